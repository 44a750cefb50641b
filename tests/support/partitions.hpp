// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Every way in which buckets can be cut over the ranks.
#pragma once

#include <kzero/plan.hpp>
#include <string>
#include <vector>

namespace kzero::test {

struct Partitioning {
  Partition partition = Partition::elements;
  bool divide = false;

  void set(PlanOptions& options) const {
    options.partition = partition;
    options.divide = divide;
  }
};

inline std::vector<Partitioning> all_partitions() {
  return {{Partition::elements},
          {Partition::parameters},
          {Partition::buckets},
          {Partition::buckets, true}};
}

/// One after another, for suites that go over something else already.
inline Partitioning some_partition(int number) {
  const std::vector<Partitioning> partitions = all_partitions();
  return partitions[static_cast<std::size_t>(number) % partitions.size()];
}

/// As ShardedOptimizer::describe() has it.
inline std::string name_of(const Partitioning& partition) {
  const char* names[] = {"elements", "parameters", "buckets"};
  return names[static_cast<int>(partition.partition)] +
         std::string(partition.divide ? ", divided" : "");
}

}  // namespace kzero::test
