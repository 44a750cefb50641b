// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A parameter of more than 2^31 elements through the optimizer. Frozen: 4.3
// GB; its first and last elements are rounded in place. Trained: 8.6 GB of
// parameters and as much of gradients. On request (scripts/test --full).
#include <gtest/gtest.h>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t count = (std::int64_t{1} << 31) + 8;

TEST(HugeParameter, SixteenBitsFrozen) {
  ParameterSet set;
  ParameterOptions options = typed(DType::bfloat16);
  options.frozen = true;
  const auto id = set.add("w", {count}, options);
  ShardedOptimizer optimizer(world(), set);
  optimizer.write_parameters(0, [&](ParameterWriter& writer) {
    const auto view = writer.parameter<bfloat16*>(id);
    view(0) = bfloat16(1.5f);
    view(view.extent(0) - 1) = bfloat16(-2.5f);
  });
  optimizer.step();
  const auto view = optimizer.parameter<const bfloat16*>(id);
  EXPECT_EQ(std::int64_t(view.extent(0)), count);
  EXPECT_EQ(float(view(0)), 1.5f);
  EXPECT_EQ(float(view(view.extent(0) - 1)), -2.5f);
}

TEST(HugeParameter, AStepChangesTheFirstAndTheLastElement) {
  ParameterSet set;
  const auto id = set.add("w", {count});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  ShardedOptimizer optimizer(world(), set, options);
  {
    const auto gradient = optimizer.gradient<float*>(id);
    gradient(0) = 1.0f;
    gradient(gradient.extent(0) - 1) = 2.0f;
  }
  const StepReport report = optimizer.step();
  EXPECT_EQ(report.zero_count(), count - 2);
  EXPECT_NEAR(report.gradient_norm(), std::sqrt(5.0), 1e-12);
  const auto view = optimizer.parameter<const float*>(id);
  EXPECT_EQ(view(0), -1.0f);
  EXPECT_EQ(view(view.extent(0) - 1), -2.0f);
}

}  // namespace
}  // namespace kzero::test
