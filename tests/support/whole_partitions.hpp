// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The partitions in which every parameter lies whole on one rank.
#pragma once

#include <kzero/plan.hpp>
#include <vector>

namespace kzero::test {

inline std::vector<Partition> whole_partitions(int ranks) {
  std::vector<Partition> all;
  if (ranks == 1) all.push_back(Partition::elements);
  [&]<class P>(P) {
    if constexpr (requires { P::buckets; }) {
      all.push_back(P::parameters);
      all.push_back(P::buckets);
    }
  }(Partition());
  return all;
}

}  // namespace kzero::test
