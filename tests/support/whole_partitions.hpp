// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The partitions in which every parameter lies whole on one rank.
#pragma once

#include <kzero/plan.hpp>
#include <vector>

namespace kzero::test {

inline std::vector<Partition> whole_partitions(int ranks) {
  std::vector<Partition> all = {Partition::parameters, Partition::buckets};
  if (ranks == 1) all.push_back(Partition::elements);
  return all;
}

}  // namespace kzero::test
