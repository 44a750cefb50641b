// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Who owns what, worked out slowly: for every thing that is given away, all of
// what is left and all ranks are looked at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <kzero/plan.hpp>
#include <map>
#include <numeric>
#include <vector>

namespace kzero::test {

/// What goes to one rank together.
using Thing = std::vector<ParameterId>;
using Owners = std::map<ParameterId, int>;

class OwnerRules {
 public:
  explicit OwnerRules(const ParameterSet& set) : set_(set) {}

  std::int64_t size_of_thing(const Thing& thing) const {
    std::int64_t size = 0;
    for (const ParameterId id : thing) size += set_[id].size;
    return size;
  }

  /// Adds to owners and loads.
  void give(std::vector<Thing> things, std::vector<std::int64_t>& loads,
            Owners& owners) const {
    while (!things.empty()) {
      std::size_t most = 0;
      for (std::size_t i = 1; i < things.size(); ++i)
        if (size_of_thing(things[i]) > size_of_thing(things[most])) most = i;
      const auto least = std::min_element(loads.begin(), loads.end());
      *least += size_of_thing(things[most]);
      for (const ParameterId id : things[most])
        owners[id] = static_cast<int>(least - loads.begin());
      things.erase(things.begin() + std::ptrdiff_t(most));
    }
  }

  /// Of the parameters of these buckets, each by itself, by ascending index.
  static std::vector<Thing> apart(const std::vector<Thing>& buckets) {
    Thing all;
    for (const Thing& bucket : buckets)
      all.insert(all.end(), bucket.begin(), bucket.end());
    std::sort(all.begin(), all.end());
    std::vector<Thing> things;
    for (const ParameterId id : all) things.push_back({id});
    return things;
  }

  /// loads: what the ranks have before, of which old_largest is the largest
  /// parameter.
  Owners owners_of(const std::vector<Thing>& buckets,
                   const PlanOptions& options, std::vector<std::int64_t> loads,
                   std::int64_t old_largest = 0) const {
    Owners owners;
    if (options.partition == Partition::parameters)
      give(apart(buckets), loads, owners);
    else if (!options.divide)
      give(buckets, loads, owners);
    else
      owners = divided(buckets, loads, old_largest);
    return owners;
  }

 private:
  Owners divided(std::vector<Thing> buckets,
                 const std::vector<std::int64_t>& before,
                 std::int64_t largest) const {
    std::stable_sort(buckets.begin(), buckets.end(),
                     [&](const Thing& a, const Thing& b) {
                       return size_of_thing(a) > size_of_thing(b);
                     });
    std::int64_t total =
        std::accumulate(before.begin(), before.end(), std::int64_t{0});
    for (const Thing& bucket : buckets)
      for (const ParameterId id : bucket) {
        total += set_[id].size;
        largest = std::max(largest, set_[id].size);
      }
    const auto ranks = std::int64_t(before.size());
    for (std::size_t whole = buckets.size();; whole /= 2) {
      const auto cut = buckets.begin() + std::ptrdiff_t(whole);
      Owners owners;
      std::vector<std::int64_t> loads = before;
      give({buckets.begin(), cut}, loads, owners);
      give(apart({cut, buckets.end()}), loads, owners);
      const bool fits =
          std::all_of(loads.begin(), loads.end(), [&](std::int64_t load) {
            return load <= largest || load * ranks * 20 <= total * 21;
          });
      if (fits || whole == 0) return owners;
    }
  }

  const ParameterSet& set_;
};

/// The parameters of each trained bucket, as they lie there.
inline std::vector<Thing> buckets_of(const Plan& plan) {
  std::vector<Thing> buckets;
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
    const Range range = plan.buckets()[static_cast<std::size_t>(b)].parameters;
    const auto begin = plan.buffer_of(b).parameters.begin();
    buckets.emplace_back(begin + range.begin, begin + range.end);
  }
  return buckets;
}

/// Real elements by rank, as the plan's segments have them.
inline std::vector<std::int64_t> loads_of(const Plan& plan) {
  std::vector<std::int64_t> loads;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    loads.push_back(0);
    for (const Segment& segment : plan.segments(rank))
      loads.back() += segment.in_parameter.size();
  }
  return loads;
}

}  // namespace kzero::test
