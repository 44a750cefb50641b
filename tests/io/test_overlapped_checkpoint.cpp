// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case 16: checkpoints and states while the gathers of the last step are under
// way have its values.
#include <gtest/gtest.h>

#include "io/scratch_folder.hpp"
#include "optim/overlap_model.hpp"

namespace kzero::test {
namespace {

OptimizerOptions adam() {
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.05};
  options.plan.bucket_bytes = 400;
  return options;
}

class OverlappedCheckpoint : public testing::Test {
 protected:
  std::unique_ptr<ShardedOptimizer> make(const Mode& mode) {
    auto optimizer = std::make_unique<ShardedOptimizer>(
        make_simulated_communicator(world(),
                                    {std::chrono::microseconds(200), 50e6}),
        model.set, mode.in(adam()));
    model.write_start(*optimizer);
    return optimizer;
  }

  void train(ShardedOptimizer& optimizer, int begin, int end) {
    for (int step = begin; step < end; ++step) {
      model.pass(optimizer, model.ids, step);
      optimizer.step();
    }
  }

  const OverlapModel model;
};

TEST_F(OverlappedCheckpoint, SavesWhatTheStepGave) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  const auto plain = make({});
  train(*plain, 0, 3);
  const auto after_three = read_all(*plain);
  train(*plain, 3, 5);
  const auto after_five = read_all(*plain);
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    const auto path = folder.path() / "saved.h5";
    auto optimizer = make(mode);
    train(*optimizer, 0, 3);
    save_checkpoint(*optimizer, path);
    // Loaded over what another step has left under way.
    train(*optimizer, 3, 4);
    load_checkpoint(*optimizer, path);
    EXPECT_EQ(read_all(*optimizer), after_three);
    train(*optimizer, 3, 5);
    // The text of the state too, right after a step.
    EXPECT_EQ(state_json(*optimizer), state_json(*plain));
    EXPECT_EQ(read_all(*optimizer), after_five);
  }
}

TEST_F(OverlappedCheckpoint, ConsolidatesWhatTheStepGave) {
  const int root = world()->size() - 1;
  const auto plain = make({});
  train(*plain, 0, 3);
  const auto expected = plain->consolidate(root);
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    auto optimizer = make(mode);
    train(*optimizer, 0, 3);
    EXPECT_EQ(optimizer->consolidate(root), expected);
    // Loaded over what another step has left under way.
    train(*optimizer, 3, 4);
    optimizer->load_state(expected, root);
    EXPECT_EQ(optimizer->consolidate(root), expected);
  }
}

}  // namespace
}  // namespace kzero::test
