// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Loss scalers: the traces of numerics.md, and what a step does with the scale.
#include "optim/loss_scale.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string_view>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// I: overflow, o: good.
constexpr std::string_view pattern = "IoIIooIoo";

DynamicScaler small(std::int64_t hysteresis, double minimum) {
  return {8.0, 2.0, 0.5, 2, hysteresis, minimum};
}

const std::vector<double> like_torch = {4, 4, 2, 1, 1, 2, 1, 1, 2};
const std::vector<double> like_megatron = {8, 8, 4, 2, 2, 4, 4, 4, 8};

std::vector<double> trace(const DynamicScaler& scaling) {
  const Scaler scaler = Scaler::dynamic(scaling);
  detail::LossScaleState state = detail::initial_state(scaler);
  std::vector<double> scales;
  for (const char each : pattern) {
    state = detail::next_state(scaler, state, each == 'I', 1.0);
    scales.push_back(state.scale);
  }
  return scales;
}

TEST(LossScale, FollowsTheTraces) {
  EXPECT_EQ(trace(small(1, 0.0)), like_torch);
  EXPECT_EQ(trace(small(2, 1.0)), like_megatron);
}

TEST(LossScale, PresetsAreThoseOfTheModels) {
  EXPECT_EQ(DynamicScaler::torch(),
            (DynamicScaler{65536.0, 2.0, 0.5, 2000, 1, 0.0}));
  EXPECT_EQ(DynamicScaler::megatron(),
            (DynamicScaler{4294967296.0, 2.0, 0.5, 1000, 2, 1.0}));
}

// And what gradients are multiplied by, 1/(divisor*scale), too.
TEST(LossScale, StaysANormalFloat32Number) {
  const Scaler scaler = Scaler::dynamic({1.0, 2.0, 0.5, 1, 1, 0.0});
  const auto after_many = [&](bool overflow, double divisor) {
    auto state = detail::initial_state(scaler);
    for (int i = 0; i < 400; ++i)
      state = detail::next_state(scaler, state, overflow, divisor);
    return state.scale;
  };
  EXPECT_EQ(after_many(true, 1.0), std::ldexp(1.0, -126));
  EXPECT_EQ(after_many(false, 1.0), std::ldexp(1.0, 126));
  EXPECT_EQ(after_many(false, 1024.0), std::ldexp(1.0, 116));
  EXPECT_EQ(after_many(true, 1.0 / 1024.0), std::ldexp(1.0, -117));
}

TEST(LossScale, OtherKindsNeverChange) {
  for (const Scaler& scaler : {Scaler::none, Scaler::constant(128.0)}) {
    const auto first = detail::initial_state(scaler);
    EXPECT_EQ(detail::next_state(scaler, first, true, 1.0).scale, first.scale);
    EXPECT_EQ(detail::next_state(scaler, first, false, 1.0).scale, first.scale);
  }
}

struct Scaled {
  std::shared_ptr<Communicator> communicator = world();
  ParameterId id;
  ShardedOptimizer optimizer;

  explicit Scaled(const Scaler& scaler, DType dtype = DType::float32)
      : optimizer([&] {
          ParameterSet set;
          id = set.add("w", {300}, typed(dtype));
          OptimizerOptions options;
          options.rule = Sgd{.learning_rate = 1.0};
          options.scaler = scaler;
          return ShardedOptimizer(communicator, set, options);
        }()) {}

  StepReport step(double gradient) {
    fill_gradient(optimizer, id, [&](auto) { return gradient; });
    return optimizer.step();
  }
};

TEST(LossScale, IsDividedOut) {
  Scaled scaled(Scaler::constant(512.0));
  EXPECT_EQ(scaled.optimizer.loss_scale(), 512.0);
  EXPECT_EQ(scaled.optimizer.device_loss_scale()(), 512.0);
  const StepReport report = scaled.step(512.0);
  EXPECT_EQ(report.loss_scale(), 512.0);
  EXPECT_NEAR(report.gradient_norm(), std::sqrt(300.0), 1e-6);
  EXPECT_EQ(read_parameter(scaled.optimizer, scaled.id)[299], -1.0);
}

// Case 10: the scale that multiplied the loss is the one that divides.
TEST(LossScale, ChangesAfterTheGradientsWereUnscaled) {
  Scaled scaled(Scaler::dynamic({4.0, 2.0, 0.5, 1, 1, 0.0}));
  const StepReport report = scaled.step(4.0);  // true gradient 1
  EXPECT_EQ(report.loss_scale(), 4.0);
  EXPECT_EQ(read_parameter(scaled.optimizer, scaled.id)[0], -1.0);
  EXPECT_EQ(scaled.optimizer.loss_scale(), 8.0);
  EXPECT_EQ(scaled.optimizer.device_loss_scale()(), 8.0);
}

// The whole pipeline, an overflow on one rank at a time.
TEST(LossScale, EveryRankFollowsTheTraces) {
  for (const auto& [scaling, expected] :
       {std::pair(small(1, 0.0), like_torch),
        std::pair(small(2, 1.0), like_megatron)}) {
    Scaled scaled(Scaler::dynamic(scaling));
    const int ranks = scaled.communicator->size();
    double moved = 0.0;
    std::int64_t skipped = 0;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const double scale = scaled.optimizer.loss_scale();
      const bool overflow = pattern[i] == 'I';
      const bool mine =
          scaled.communicator->rank() == int(i) % ranks && overflow;
      const StepReport report = scaled.step(mine ? infinity : scale);
      EXPECT_EQ(report.updated(), !overflow);
      EXPECT_EQ(report.loss_scale(), scale);
      EXPECT_EQ(scaled.optimizer.loss_scale(), expected[i]) << "step " << i;
      moved += overflow ? 0.0 : 1.0;
      skipped += overflow ? 1 : 0;
      EXPECT_EQ(report.skipped_total(), skipped);
      EXPECT_EQ(read_parameter(scaled.optimizer, scaled.id)[0], -moved);
    }
    EXPECT_EQ(scaled.optimizer.update_count(scaled.id), 5);
  }
}

// float16 gradients of 2^-26 vanish; scaled, they arrive.
TEST(LossScale, SavesSmallHalfGradients) {
  ParameterSet set;
  ParameterOptions half = typed(DType::float16);
  half.gradient_dtype = DType::float16;
  const auto id = set.add("w", {100}, half);
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = std::ldexp(1.0, 26)};
  options.scaler = Scaler::constant(1024.0);
  ShardedOptimizer optimizer(world(), set, options);
  const double tiny = std::ldexp(1.0, -26);
  fill_gradient(optimizer, id, [&](auto) { return tiny * 1024.0; });
  optimizer.step();
  EXPECT_EQ(read_parameter(optimizer, id)[0], -1.0);
  fill_gradient(optimizer, id, [&](auto) { return tiny; });
  optimizer.step();
  EXPECT_EQ(read_parameter(optimizer, id)[0], -1.0);
}

TEST(LossScale, AScaleThatCannotBeDividedOutIsRefused) {
  for (const auto& [scale, divisor] :
       {std::pair(1e30, 1e20), std::pair(1e-30, 1e-20)}) {
    ParameterSet set;
    set.add("w", {4});
    OptimizerOptions options;
    options.scaler = Scaler::constant(scale);
    options.reduction = Reduction::divide_by(divisor);
    const auto message = message_of<InvalidArgument>(
        [&] { ShardedOptimizer(world(), set, options); });
    EXPECT_NE(message.find("the loss scale 1e"), std::string::npos) << message;
  }
}

TEST(LossScale, ADynamicScalerNeedsSkipping) {
  for (const Nonfinite& action : {Nonfinite::report, Nonfinite::ignore}) {
    ParameterSet set;
    set.add("w", {4});
    OptimizerOptions options;
    options.scaler = Scaler::dynamic();
    options.nonfinite = action;
    EXPECT_THROW(ShardedOptimizer(world(), set, options), InvalidArgument);
    options.nonfinite = Nonfinite::throw_after(1);
    ShardedOptimizer optimizer(world(), set, options);
    fill_gradient(optimizer, {0}, [](auto) { return infinity; });
    EXPECT_THROW(optimizer.step(), NonfiniteError);
    EXPECT_EQ(optimizer.loss_scale(), 32768.0);
  }
}

}  // namespace
}  // namespace kzero::test
