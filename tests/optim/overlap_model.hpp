// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A model whose gradients depend on its parameters, so that a stale one shows
// in everything that follows; its passes, with marks in any order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "optim/setup_facts.hpp"
#include "support/optimizer_support.hpp"
#include "support/partitions.hpp"

namespace kzero::test {

/// How a training run overlaps.
struct Mode {
  Schedule schedule = Schedule::at_step;
  GatherMode gather = GatherMode::at_step;
  Progress progress = Progress::calls;

  OptimizerOptions in(OptimizerOptions options) const {
    options.schedule = schedule;
    options.gather = gather;
    options.progress = progress;
    return options;
  }
};

inline std::string name_of(const Mode& mode) {
  return detail::concat(
      detail::to_string(mode.schedule), ", ",
      mode.gather == GatherMode::at_step ? "at_step" : "overlapped", ", ",
      mode.progress == Progress::thread ? "thread" : "calls");
}

/// Whether the update needs the whole gradient first, which interleaved updates
/// cannot wait for.
enum class Decision { none, needed };

inline std::vector<Mode> all_modes(Decision decision = Decision::none) {
  std::vector<Mode> modes;
  for (const Schedule schedule :
       {Schedule::at_step, Schedule::after_backward, Schedule::interleaved})
    for (const GatherMode gather :
         {GatherMode::at_step, GatherMode::overlapped})
      for (const Progress progress : {Progress::calls, Progress::thread})
        if (decision == Decision::none || schedule != Schedule::interleaved)
          modes.push_back({schedule, gather, progress});
  return modes;
}

/// A partition and a mode.
struct Way {
  Partitioning partition;
  Mode mode;
};

/// All of them together; but modes with a thread, of which there are more than
/// cores, with one partition each.
inline std::vector<Way> all_ways() {
  std::vector<Way> ways;
  int turn = 0;
  for (const Mode& mode : all_modes())
    if (mode.progress == Progress::thread)
      ways.push_back({some_partition(turn++), mode});
    else
      for (const Partitioning& partition : all_partitions())
        ways.push_back({partition, mode});
  return ways;
}

inline std::string name_of(const Way& way) {
  return name_of(way.partition) + ", " + name_of(way.mode);
}

class OverlapModel {
 public:
  OverlapModel() {
    const DType types[] = {DType::float32, DType::bfloat16, DType::float64,
                           DType::float16};
    const std::int64_t sizes[] = {300, 0, 71, 129, 64, 1, 500, 37, 211};
    for (std::int64_t i = 0; i < 9; ++i) {
      ParameterOptions options = typed(types[(i / 2) % 4]);
      if (i % 3 == 1) options.gradient_dtype = DType::bfloat16;
      options.chunk = i < 6 ? 0 : 1;
      if (i == 4) options.unmarked = Unmarked::keep;
      ids.push_back(set.add(detail::concat("p", i), {sizes[i]}, options));
    }
  }

  void write_start(ShardedOptimizer& optimizer) const {
    optimizer.write_parameters(0, [&](ParameterWriter& writer) {
      for (const ParameterId id : ids)
        writer.visit(id, [&](const auto& view) {
          fill_view(view, [&](auto i) { return 0.25 + double(i % 7) / 8.0; });
        });
    });
  }

  /// Reads parameters in an order, and fills their gradients from what it read.
  void pass(ShardedOptimizer& optimizer, std::span<const ParameterId> order,
            int step) const {
    const int rank = optimizer.communicator()->rank();
    for (const ParameterId id : order) {
      const std::vector<double> values = read_parameter(optimizer, id);
      fill_gradient(optimizer, id, [&](auto i) {
        const double value = values[static_cast<std::size_t>(i)];
        return value * (0.5 + 0.25 * rank) + double((i + step) % 5) - 1.5;
      });
    }
  }

  std::vector<ParameterId> shuffled(std::mt19937& random) const {
    std::vector<ParameterId> order = ids;
    std::shuffle(order.begin(), order.end(), random);
    return order;
  }

  ParameterSet set;
  std::vector<ParameterId> ids;
};

}  // namespace kzero::test
