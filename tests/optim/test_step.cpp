// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a step does with gradients: averaging, marks, norm, clipping, zeros and
// what is not finite. Expected values are computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// lr = 1: after a step from 0 the parameter is minus the gradient applied.
OptimizerOptions unit_sgd() {
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  return options;
}

class Step : public testing::Test {
 protected:
  ShardedOptimizer make(std::vector<std::int64_t> sizes,
                        const OptimizerOptions& options = unit_sgd(),
                        DType dtype = DType::float32) {
    ParameterSet model;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      model.add(detail::concat("p", i), {sizes[i]}, typed(dtype));
    return ShardedOptimizer(communicator, model, options);
  }

  void expect_all(ShardedOptimizer& optimizer, ParameterId id, double value) {
    for (double each : read_parameter(optimizer, id)) ASSERT_EQ(each, value);
  }

  std::shared_ptr<Communicator> communicator = world();
  const int ranks = communicator->size();
  const int rank = communicator->rank();
};

// Case 13: rank 0 {1, 2}, rank 1 {11, 12}: 13, or 6.5 scaled by 1/2.
TEST_F(Step, MicroBatchesAddUpAndRanksAreAveraged) {
  for (double scale : {1.0, 0.5}) {
    auto optimizer = make({300});
    const auto gradient = optimizer.gradient<float*>({0});
    double mean = 0.0;
    for (int r = 0; r < ranks; ++r) mean += scale * (20.0 * r + 3.0) / ranks;
    for (double batch : {1.0, 2.0})
      for (std::size_t i = 0; i < 300; ++i)
        gradient(i) += static_cast<float>(scale * (10.0 * rank + batch));
    optimizer.step();
    expect_all(optimizer, {0}, -static_cast<double>(static_cast<float>(mean)));
    if (ranks == 2) expect_all(optimizer, {0}, scale == 1.0 ? -13.0 : -6.5);
  }
}

TEST_F(Step, DivisorIsAnOption) {
  for (const auto& [reduction, divisor] :
       {std::pair(Reduction::mean, double(ranks)),
        std::pair(Reduction::sum, 1.0),
        std::pair(Reduction::divide_by(8.0), 8.0)}) {
    auto options = unit_sgd();
    options.reduction = reduction;
    auto optimizer = make({5}, options, DType::float64);
    fill_gradient(optimizer, {0}, [&](auto) { return rank + 1.0; });
    optimizer.step();
    const double sum = ranks * (ranks + 1) / 2.0;
    expect_all(optimizer, {0}, -(sum * (1.0 / divisor)));
  }
}

// Case 12: 4 elements, 1 on rank 0 and 3 on rank 1: mean 2, norm 4.
TEST_F(Step, NormIsOfTheAveragedGradientOverAllShards) {
  auto optimizer = make({4});
  fill_gradient(optimizer, {0}, [&](auto) { return 2.0 * rank + 1.0; });
  const StepReport report = optimizer.step();
  const double mean = ranks;  // of 1, 3, 5, ...
  EXPECT_NEAR(report.gradient_norm(), 2.0 * mean, 1e-6 * mean);
  EXPECT_EQ(report.zero_count(), 0);
  EXPECT_EQ(report.nonfinite(), 0);
}

TEST_F(Step, NormAndZerosSeeRealElementsOnly) {
  for (DType dtype :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    auto optimizer = make({100, 1, 70, 0, 5}, unit_sgd(), dtype);
    fill_gradient(optimizer, {2}, [](auto i) { return i < 30 ? 0.0 : 2.0; });
    const StepReport report = optimizer.step();
    EXPECT_EQ(report.zero_count(), 176 - 40);
    EXPECT_NEAR(report.gradient_norm(), std::sqrt(160.0), 1e-6);
  }
}

TEST_F(Step, ClipScalesToTheNorm) {
  auto options = unit_sgd();
  options.clip_norm = 1.0;
  options.plan.bucket_bytes = 400;
  auto optimizer = make({200, 56}, options, DType::float64);
  for (std::int64_t p : {0, 1})
    fill_gradient(optimizer, {p}, [](auto) { return 1.0; });
  const StepReport report = optimizer.step();
  EXPECT_DOUBLE_EQ(report.gradient_norm(), 16.0);
  const double coefficient = static_cast<float>(1.0 / (16.0 + 1e-6));
  expect_all(optimizer, {0}, -coefficient);
  expect_all(optimizer, {1}, -coefficient);
}

TEST_F(Step, ClipLeavesSmallGradients) {
  auto options = unit_sgd();
  options.clip_norm = 100.0;
  auto optimizer = make({256}, options);
  fill_gradient(optimizer, {0}, [](auto) { return 0.5; });
  optimizer.step();
  expect_all(optimizer, {0}, -0.5);
}

// Case 14: three parameters, one never marked, on all ranks or on one only.
TEST_F(Step, UnmarkedCountsAsZeroWhateverItHolds) {
  for (bool on_all_ranks : {true, false}) {
    auto optimizer = make({10, 300, 7});
    for (std::int64_t p : {0, 1, 2})
      fill_gradient(optimizer, {p}, [&](auto) { return p == 1 ? nan : 1.0; });
    const bool leave = on_all_ranks || rank == 0;
    if (!leave) fill_gradient(optimizer, {1}, [](auto) { return 1.0; });
    optimizer.mark_ready({2});
    optimizer.mark_ready({0});
    if (!leave) optimizer.mark_ready({1});
    const StepReport report = optimizer.step();
    EXPECT_EQ(report.nonfinite(), 0);
    expect_all(optimizer, {0}, -1.0);
    expect_all(optimizer, {2}, -1.0);
    const float mean =
        float(on_all_ranks ? 0 : ranks - 1) * (1.0f / float(ranks));
    expect_all(optimizer, {1}, on_all_ranks ? 0.0 : -double(mean));
  }
}

TEST_F(Step, MarkingAllInAnyOrderIsMarkingNone) {
  auto optimizer = make({10, 300, 7});
  for (std::int64_t p : {0, 1, 2})
    fill_gradient(optimizer, {p}, [&](auto i) { return double(i + p); });
  if (rank % 2 == 0) {
    for (std::int64_t p : {0, 1, 2}) optimizer.mark_ready({p});
  } else {
    for (std::int64_t p : {1, 0, 2}) optimizer.mark_ready({p});
  }
  optimizer.step();
  const auto values = read_parameter(optimizer, {1});
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_FLOAT_EQ(float(values[i]), -float(i + 1));
}

TEST_F(Step, WrongMarksAreRefusedAndTheStepGoesOn) {
  auto optimizer = make({10, 3});
  fill_gradient(optimizer, {0}, [](auto) { return 1.0; });
  optimizer.mark_ready({0});
  EXPECT_NE(message_of<InvalidArgument>([&] {
              optimizer.mark_ready({0});
            }).find("\"p0\""),
            std::string::npos);
  EXPECT_THROW(optimizer.mark_ready({2}), InvalidArgument);
  EXPECT_THROW(optimizer.mark_ready({-1}), InvalidArgument);
  EXPECT_THROW(optimizer.zero_gradients(), InvalidArgument);
  EXPECT_THROW(optimizer.reload_main_from_parameters(), InvalidArgument);
  EXPECT_THROW(optimizer.group("default").set("learning_rate", 2.0),
               InvalidArgument);
  optimizer.step();
  expect_all(optimizer, {0}, -1.0);
  optimizer.zero_gradients();
  optimizer.mark_ready({0});
  optimizer.step();
}

TEST_F(Step, ClosureGivesTheLoss) {
  auto optimizer = make({3});
  const StepReport report = optimizer.step([&] {
    fill_gradient(optimizer, {0}, [](auto) { return 1.0; });
    return 0.25 + rank;
  });
  EXPECT_EQ(report.loss(), 0.25 + rank);
  EXPECT_EQ(optimizer.step().loss(), std::nullopt);
}

// Non-finite in one element of one rank's contribution.
class NonfiniteStep : public Step {
 protected:
  ShardedOptimizer poisoned(Nonfinite nonfinite, double value,
                            DType dtype = DType::float32) {
    OptimizerOptions options;
    options.rule = AdamW{.learning_rate = 1.0};
    options.nonfinite = nonfinite;
    auto optimizer = make({400}, options, dtype);
    write_parameter(optimizer, {0}, [](auto) { return 2.0; });
    poison(optimizer, value);
    return optimizer;
  }

  void poison(ShardedOptimizer& optimizer, double value) {
    const int last = ranks - 1;
    fill_gradient(optimizer, {0}, [&](auto i) {
      return rank == last && i == 123 ? value : 1.0;
    });
  }
};

TEST_F(NonfiniteStep, IsReportedByDefault) {
  for (double value : {infinity, -infinity, nan}) {
    auto optimizer = poisoned(Nonfinite::report, value);
    const StepReport report = optimizer.step();
    EXPECT_TRUE(report.updated());
    EXPECT_EQ(report.nonfinite(), 1);
    EXPECT_FALSE(std::isfinite(report.gradient_norm()));
    EXPECT_FALSE(std::isfinite(read_parameter(optimizer, {0})[123]));
    EXPECT_TRUE(std::isfinite(read_parameter(optimizer, {0})[124]));
  }
}

TEST_F(NonfiniteStep, SkipLeavesEverythingOnAllRanks) {
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float64})
    for (double value : {infinity, -infinity, nan}) {
      auto optimizer = poisoned(Nonfinite::skip, value, dtype);
      StepReport report = optimizer.step();
      EXPECT_FALSE(report.updated());
      EXPECT_EQ(report.nonfinite(), 1);
      EXPECT_EQ(report.skipped_total(), 1);
      expect_all(optimizer, {0}, 2.0);
      EXPECT_EQ(optimizer.update_count({0}), 0);
      EXPECT_EQ(optimizer.steps(), 0);
      optimizer.visit({0}, [](const auto&, const auto& gradient) {
        for (std::size_t i = 0; i < gradient.extent(0); ++i)
          ASSERT_EQ(static_cast<double>(gradient(i)), 0.0);
      });
      // The moments are as new: the next step is a first step.
      fill_gradient(optimizer, {0}, [](auto) { return 1.0; });
      report = optimizer.step();
      EXPECT_TRUE(report.updated());
      EXPECT_EQ(report.skipped_total(), 1);
      EXPECT_NEAR(read_parameter(optimizer, {0})[123], 2.0 * 0.99 - 1.0, 5e-3);
    }
}

TEST_F(NonfiniteStep, ThrowsAfterSoManyInARow) {
  auto optimizer = poisoned(Nonfinite::throw_after(2), nan);
  EXPECT_FALSE(optimizer.step().updated());
  fill_gradient(optimizer, {0}, [](auto) { return 0.0; });
  EXPECT_TRUE(optimizer.step().updated());
  poison(optimizer, nan);
  EXPECT_FALSE(optimizer.step().updated());
  poison(optimizer, nan);
  EXPECT_THROW(optimizer.step(), NonfiniteError);
}

TEST_F(NonfiniteStep, IgnoreDoesNotLook) {
  auto optimizer = poisoned(Nonfinite::ignore, nan);
  const StepReport report = optimizer.step();
  EXPECT_TRUE(report.updated());
  EXPECT_EQ(report.nonfinite(), 0);
}

TEST_F(Step, BfloatMovesInItsMainParameter) {
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 6e-4, .weight_decay = 0.0};
  auto half = make({130}, options, DType::bfloat16);
  auto full = make({130}, options, DType::float32);
  for (ShardedOptimizer* each : {&half, &full}) {
    write_parameter(*each, {0}, [](auto) { return 1.0; });
    for (int step = 0; step < 100; ++step) {
      fill_gradient(*each, {0}, [](auto i) { return double(i % 5) + 1.0; });
      each->step();
    }
  }
  const auto halves = read_parameter(half, {0});
  const auto fulls = read_parameter(full, {0});
  EXPECT_LT(halves[0], 0.95);
  for (std::size_t i = 0; i < 130; ++i)
    ASSERT_EQ(float(halves[i]), float(bfloat16(float(fulls[i]))));
}

// Case 4: four types in one optimizer, each with a main type of its own.
TEST_F(Step, TypesMix) {
  ParameterSet model;
  for (DType dtype :
       {DType::float32, DType::bfloat16, DType::float16, DType::float64}) {
    model.add(detail::concat("plain ", dtype), {333}, typed(dtype));
    for (DType gradient :
         {DType::float32, DType::bfloat16, DType::float16, DType::float64}) {
      ParameterOptions options = typed(dtype);
      options.gradient_dtype = gradient;
      model.add(detail::concat(dtype, "/", gradient), {77}, options);
    }
  }
  auto options = unit_sgd();
  options.plan.bucket_bytes = 512;
  ShardedOptimizer optimizer(communicator, model, options);
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t p = 0; p < model.size(); ++p)
      fill_gradient(optimizer, {p},
                    [&](auto i) { return double(i % 8) * 0.5; });
    EXPECT_TRUE(optimizer.step().updated());
  }
  for (std::int64_t p = 0; p < model.size(); ++p) {
    const auto values = read_parameter(optimizer, {p});
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], -double(i % 8), 1e-6 * double(i % 8)) << p;
  }
}

TEST_F(Step, EqualGroupsKeepTheirOwnHyperparameters) {
  ParameterSet model;
  ParameterOptions other;
  other.group = "other";
  model.add("a", {100});
  model.add("b", {100}, other);
  auto options = unit_sgd();
  options.groups["other"] = Sgd{.learning_rate = 0.25, .momentum = 0.5};
  ShardedOptimizer optimizer(communicator, model, options);
  EXPECT_EQ(optimizer.group("other").get("learning_rate"), 0.25);
  EXPECT_EQ(optimizer.group("other").rule(), "sgd");
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t p : {0, 1})
      fill_gradient(optimizer, {p}, [](auto) { return 1.0; });
    optimizer.step();
    optimizer.group("other").set("learning_rate", 0.5);
  }
  expect_all(optimizer, {0}, -2.0);
  expect_all(optimizer, {1}, -(0.25 * 1.0 + 0.5 * 1.5));
  EXPECT_THROW(optimizer.group("third"), InvalidArgument);
}

TEST_F(Step, HyperparametersThatDifferBetweenRanksAreFound) {
  for (bool clip : {false, true}) {
    auto options = unit_sgd();
    if (clip) options.clip_norm = 1e6;
    options.plan.bucket_bytes = 256;
    auto optimizer = make({100, 100, 100}, options);
    for (std::int64_t p : {0, 1, 2})
      fill_gradient(optimizer, {p}, [](auto) { return 1.0; });
    optimizer.mark_ready({0});
    optimizer.mark_ready({1});
    optimizer.mark_ready({2});
    if (ranks > 1) {
      optimizer.step();
      for (std::int64_t p : {0, 1, 2})
        fill_gradient(optimizer, {p}, [](auto) { return 1.0; });
      Group group = optimizer.group("default");
      if (rank == ranks - 1) group.set("learning_rate", 2.0);
      EXPECT_THROW(optimizer.step(), InvalidArgument);
      // Nothing was changed, and the step can be made.
      expect_all(optimizer, {0}, -1.0);
      EXPECT_EQ(optimizer.update_count({0}), 1);
      group.set("learning_rate", 3.0);
      optimizer.step();
      for (std::int64_t p : {0, 1, 2}) expect_all(optimizer, {p}, -4.0);
    }
  }
}

// Case 19: two optimizers on two communicators of the same ranks.
TEST_F(Step, TwoOptimizersDoNotDisturbEachOther) {
  auto first = make({300});
  communicator = world();
  auto second = make({500, 20});
  for (int step = 0; step < 3; ++step) {
    fill_gradient(first, {0}, [](auto) { return 1.0; });
    fill_gradient(second, {0}, [](auto) { return 2.0; });
    first.step();
    second.step();
  }
  expect_all(first, {0}, -3.0);
  expect_all(second, {0}, -6.0);
}

// Cases 1 to 3: shards of padding only, more ranks than parameters, nothing.
TEST_F(Step, EmptyAndTinyModelsStep) {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {}, {0}, {0, 0}, {5}, {8, 0, 24}, {1, 1, 1, 1, 1}}) {
    auto optimizer = make(sizes);
    for (std::int64_t p = 0; p < std::int64_t(sizes.size()); ++p)
      fill_gradient(optimizer, {p}, [](auto) { return 1.0; });
    EXPECT_TRUE(optimizer.step().updated());
    for (std::int64_t p = 0; p < std::int64_t(sizes.size()); ++p)
      expect_all(optimizer, {p}, -1.0);
  }
}

}  // namespace
}  // namespace kzero::test
