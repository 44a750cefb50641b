// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a random program joins with.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "optim/overlap_model.hpp"
#include "support/dice.hpp"

namespace kzero::test {

/// Another optimizer, which joins with the first: Sgd with a rate of 1 on what
/// ranks that step add up.
class Companion {
 public:
  Companion(const std::shared_ptr<Communicator>& communicator, Dice& shared) {
    ParameterSet set;
    set.add("other", {shared.roll(300)});
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = 1.0};
    options.reduction = Reduction::sum;
    const auto modes = all_modes();
    const Mode mode = modes[std::size_t(shared.roll(int(modes.size())))];
    optimizer_ =
        std::make_unique<ShardedOptimizer>(communicator, set, mode.in(options));
  }

  ShardedOptimizer& optimizer() { return *optimizer_; }

  void step(const std::vector<bool>& stepping) {
    const int rank = optimizer_->communicator()->rank();
    for (int r = 0; r < int(stepping.size()); ++r)
      if (stepping[std::size_t(r)]) value_ -= r + 1;
    if (!stepping[std::size_t(rank)]) return;
    fill_view(optimizer_->gradient<float*>({0}),
              [&](std::int64_t) { return rank + 1; });
    if (rank == 0) optimizer_->mark_ready({0});
    optimizer_->step();
  }

  bool is_right() {
    const auto values = read_parameter(*optimizer_, {0});
    return std::ranges::all_of(values, [&](double v) { return v == value_; });
  }

 private:
  std::unique_ptr<ShardedOptimizer> optimizer_;
  double value_ = 0.0;
};

}  // namespace kzero::test
