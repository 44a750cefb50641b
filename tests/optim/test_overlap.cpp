// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reductions behind the backward pass and gathers ahead of the forward pass:
// whoever advances them, in whatever order gradients come, the parameters have
// the bits of a run in which nothing overlaps.
#include <gtest/gtest.h>

#include <limits>

#include "optim/overlap_model.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

constexpr int steps = 20;

OptimizerOptions adam(std::int64_t bucket_bytes) {
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.05, .weight_decay = 0.1};
  options.plan.bucket_bytes = bucket_bytes;
  return options;
}

// seed: of this rank. None: the order of declaration, and nothing is marked.
std::vector<double> train(const std::shared_ptr<Communicator>& communicator,
                          const OptimizerOptions& options, int seed) {
  const OverlapModel model;
  ShardedOptimizer optimizer(communicator, model.set, options);
  model.write_start(optimizer);
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int step = 0; step < steps; ++step) {
    if (seed < 0) {
      optimizer.zero_gradients();
      model.pass(optimizer, model.ids, step);
    } else {
      if (random() % 2 == 0) optimizer.zero_gradients();
      const auto order = model.shuffled(random);
      if (random() % 4 == 0) optimizer.wait_parameters();
      model.pass(optimizer, order, step);
      if (random() % 2 == 0) optimizer.finish_gather(int(random() % 2));
      for (const ParameterId id : model.shuffled(random))
        optimizer.mark_ready(id);
    }
    optimizer.step();
  }
  return read_all(optimizer);
}

class Overlap : public testing::Test {
 protected:
  /// Norms and trust ratios add up in the order of the plan: then a partition
  /// is compared with itself.
  enum class Sums { none, of_the_plan };
  void expect_same_bits(OptimizerOptions plain, int seeds, Sums sums) {
    auto expected = train(communicator, plain, -1);
    for (int seed = 0; seed < seeds; ++seed) {
      const Partitioning partition = some_partition(seed);
      partition.set(plain.plan);
      if (sums == Sums::of_the_plan) expected = train(communicator, plain, -1);
      for (const Mode& mode :
           all_modes(sums == Sums::none ? Decision::none : Decision::needed)) {
        SCOPED_TRACE(detail::concat("seed ", seed, ", ", name_of(mode), ", ",
                                    name_of(partition)));
        ASSERT_EQ(train(communicator, mode.in(plain),
                        seed * communicator->size() + communicator->rank()),
                  expected);
      }
    }
  }

  const std::shared_ptr<Communicator> communicator = world();
};

TEST_F(Overlap, SameBitsForAnyOrderOfMarking) {
  expect_same_bits(adam(600), 100, Sums::none);
}

TEST_F(Overlap, SameBitsForAnyBucketSizeAndPartition) {
  const auto expected = train(communicator, adam(600), -1);
  int turn = 0;  // one more for each size: modes meet several partitions
  for (const std::int64_t bytes :
       {std::int64_t{1}, std::int64_t{3000}, PlanOptions::unlimited}) {
    ++turn;
    for (const Mode& mode : all_modes()) {
      const Partitioning partition = some_partition(turn++);
      OptimizerOptions options = mode.in(adam(bytes));
      partition.set(options.plan);
      EXPECT_EQ(train(communicator, options, communicator->rank()), expected)
          << name_of(mode) << ", " << name_of(partition) << ", buckets of "
          << bytes;
    }
  }
}

TEST_F(Overlap, SameBitsWithEverythingSwitchedOn) {
  auto options = adam(600);
  options.clip_norm = 3.0;
  options.scaler =
      Scaler::dynamic({.initial_scale = 8.0, .growth_interval = 3});
  expect_same_bits(options, 4, Sums::of_the_plan);
  options = adam(600);
  options.rule = Lamb{.learning_rate = 0.05};
  expect_same_bits(options, 4, Sums::of_the_plan);
}

}  // namespace
}  // namespace kzero::test
