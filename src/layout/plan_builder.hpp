// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Lays parameters out, one at a time, for plans that are new or that grow.
#pragma once

#include <array>
#include <cstdint>
#include <kzero/plan.hpp>
#include <span>
#include <unordered_map>
#include <vector>

#include "layout/rank_loads.hpp"

namespace kzero::detail {

/// Throws InvalidArgument for anything wrong with the options but their order.
void check_plan_options(const PlanOptions& options);

/// Finds the buffer of a parameter. Kinds (types, frozen, external) and chunks
/// come in runs or take turns, so the last chunk of each kind is kept at hand.
class BufferIndex {
 public:
  /// The buffer's number; next when it is a new one.
  int find_or_add(const ParameterInfo& parameter, int next);

 private:
  struct Last {
    int chunk = -1;
    int buffer = -1;
  };
  std::array<Last, 64> last_;
  std::unordered_map<std::uint64_t, int> numbers_;
};

class PlanBuilder {
 public:
  /// options are checked. old: the plan of the first parameters, which stays
  /// as it is. Throws InvalidArgument when it has more parameters.
  PlanBuilder(const ParameterSet& parameters, const PlanOptions& options,
              const Plan& old);

  /// How many the old plan has.
  std::int64_t old_parameters() const { return old_parameters_; }
  bool placed(ParameterId id) const;

  /// In layout order. Throws InvalidArgument for more elements than fit.
  void place(ParameterId id);

  /// Called once, when all are placed.
  Plan finish();

 private:
  /// A bucket in the making: the last one of its buffer.
  struct OpenBucket {
    Bucket bucket;
    std::int64_t end = 0;  // of its last parameter, in the buffer
    bool open = false;
  };

  bool has_owners() const { return plan_.partition_ != Partition::elements; }
  const ParameterInfo& info(ParameterId id) const {
    return parameters_[static_cast<std::size_t>(id.index)];
  }
  Placement& placement(ParameterId id) {
    return plan_.placements_[static_cast<std::size_t>(id.index)];
  }
  Buffer& buffer_of(const Bucket& bucket) {
    return plan_.buffers_[static_cast<std::size_t>(bucket.buffer)];
  }
  std::span<ParameterId> parameters_of(const Bucket& bucket);
  std::int64_t last_position(const Bucket& bucket);

  void add_buffer(const ParameterInfo& parameter);
  void open_bucket(int number, OpenBucket& current);
  void close_bucket(OpenBucket& current);
  void take(std::int64_t elements, const ParameterInfo& parameter);

  void join_buckets();
  void place_tied();
  std::vector<std::int64_t> old_loads() const;
  std::int64_t most_elements() const;
  void give_owners(std::span<const Bucket> buckets);
  void give_parameters(RankLoads& loads, std::vector<ParameterId> ids);
  void order_by_owner(const Bucket& bucket);
  void cut_by_owner();

  std::span<const ParameterInfo> parameters_;
  Plan plan_;  // in the making; begins as the old one
  std::int64_t old_parameters_;
  std::int64_t granularity_;   // of buckets
  std::int64_t position_ = 0;  // in layout order
  std::int64_t total_ = 0;     // elements so far, all buffers
  BufferIndex index_;
  std::vector<OpenBucket> open_;  // one a buffer
  std::vector<Bucket> buckets_;   // new ones
};

}  // namespace kzero::detail
