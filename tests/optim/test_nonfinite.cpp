// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// NaNs and infinities: who is named, what is counted, what stays unchanged.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr DType types[] = {DType::float32, DType::bfloat16, DType::float16,
                           DType::float64};

class NonfiniteSteps : public testing::Test {
 protected:
  NonfiniteSteps() {
    for (int i = 0; i < 8; ++i) {
      ParameterOptions options = typed(types[i % 4]);
      options.gradient_dtype = types[i % 4];
      ids.push_back(set.add(detail::concat("p", i), {1500 + 7 * i}, options));
    }
  }

  ShardedOptimizer make(const Nonfinite& nonfinite) {
    OptimizerOptions options;
    options.rule = AdamW{.learning_rate = 0.125};
    options.nonfinite = nonfinite;
    options.plan.bucket_bytes = 4000;
    return {communicator, set, options};
  }

  void fill(ShardedOptimizer& optimizer, double value = 1.0) {
    for (const ParameterId id : ids)
      fill_gradient(optimizer, id, [&](auto) { return value; });
  }

  // One element of one parameter on one rank.
  void spoil(ShardedOptimizer& optimizer, ParameterId id, int on,
             std::int64_t element, double value) {
    if (rank != on) return;
    fill_gradient(optimizer, id,
                  [&](auto i) { return i == element ? value : 1.0; });
  }

  std::shared_ptr<Communicator> communicator = world();
  int rank = communicator->rank();
  int ranks = communicator->size();
  ParameterSet set;
  std::vector<ParameterId> ids;
};

// Case 8, for every type, rank and place.
TEST_F(NonfiniteSteps, AllSkipAndTheReportNamesRankAndParameter) {
  auto optimizer = make(Nonfinite::skip);
  const auto before = read_all(optimizer);
  std::int64_t skipped = 0;
  for (const ParameterId id : ids) {
    for (int on = 0; on < ranks; ++on) {
      fill(optimizer);
      const std::int64_t element = (id.index * 211 + on * 701) % 1500;
      spoil(optimizer, id, on, element, on % 2 == 0 ? infinity : nan);
      const StepReport report = optimizer.step();
      EXPECT_FALSE(report.updated());
      EXPECT_EQ(report.nonfinite(), 1);
      EXPECT_EQ(report.skipped_total(), ++skipped);
      EXPECT_EQ(report.skipped_in_a_row(), skipped);
      ASSERT_TRUE(report.nonfinite_source().has_value());
      EXPECT_EQ(report.nonfinite_source()->rank, on);
      EXPECT_EQ(report.nonfinite_source()->parameter, id);
      EXPECT_EQ(report.nonfinite_source()->model_parallel_rank, 0);
      EXPECT_EQ(optimizer.update_count(id), 0);
      EXPECT_THROW(optimizer.averaged_gradient<float>(ids[0]), InvalidArgument);
    }
  }
  EXPECT_EQ(read_all(optimizer), before);
  fill(optimizer);
  const StepReport good = optimizer.step();
  EXPECT_TRUE(good.updated());
  EXPECT_FALSE(good.nonfinite_source().has_value());
  EXPECT_EQ(good.skipped_in_a_row(), 0);
  EXPECT_EQ(good.skipped_total(), skipped);
}

TEST_F(NonfiniteSteps, OfSeveralTheLowestRankThenParameterIsNamed) {
  auto optimizer = make(Nonfinite::skip);
  fill(optimizer);
  spoil(optimizer, ids[6], 0, 1499, nan);
  spoil(optimizer, ids[2], 0, 3, infinity);
  spoil(optimizer, ids[5], 0, 0, -infinity);
  spoil(optimizer, ids[0], ranks - 1, 1, nan);
  const StepReport report = optimizer.step();
  EXPECT_EQ(report.nonfinite(), 4);
  EXPECT_EQ(report.nonfinite_source()->rank, 0);
  EXPECT_EQ(report.nonfinite_source()->parameter, ranks == 1 ? ids[0] : ids[2]);
}

// Small parameters side by side, which are added up in one call: in place, and
// not.
TEST_F(NonfiniteSteps, NeighboursAreToldApart) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    ParameterSet small;
    std::vector<ParameterId> small_ids;
    for (int i = 0; i < 40; ++i) {
      ParameterOptions options = typed(dtype);
      options.gradient_dtype = dtype;
      small_ids.push_back(small.add(detail::concat("s", i), {64}, options));
    }
    OptimizerOptions options;
    options.clip_norm = 1e6;
    options.nonfinite = Nonfinite::skip;
    ShardedOptimizer optimizer(communicator, small, options);
    for (std::size_t i = 0; i < small_ids.size(); i += 3) {
      const int on = static_cast<int>(i) % ranks;
      for (const ParameterId id : small_ids)
        fill_gradient(optimizer, id, [](auto) { return 1.0; });
      spoil(optimizer, small_ids[i], on, 63, nan);
      spoil(optimizer, small_ids[(i + 20) % 40], ranks - 1, 0, infinity);
      const StepReport report = optimizer.step();
      EXPECT_EQ(report.nonfinite(), 2);
      ASSERT_TRUE(report.nonfinite_source().has_value());
      EXPECT_EQ(report.nonfinite_source()->rank, on);
      const bool is_first = on != ranks - 1 || i < 20;
      EXPECT_EQ(report.nonfinite_source()->parameter,
                small_ids[is_first ? i : i - 20]);
    }
    for (const ParameterId id : small_ids)
      fill_gradient(optimizer, id, [](auto) { return 1.0; });
    EXPECT_NEAR(optimizer.step().gradient_norm(), std::sqrt(40 * 64.0), 1e-9);
  }
}

// Infinities of opposite sign make a NaN: still the ranks' fault.
TEST_F(NonfiniteSteps, ReportUpdatesAllTheSameAndTells) {
  auto optimizer = make(Nonfinite::automatic);
  fill(optimizer);
  spoil(optimizer, ids[1], 0, 10, infinity);
  spoil(optimizer, ids[1], ranks - 1, 10, -infinity);
  const StepReport report = optimizer.step();
  EXPECT_TRUE(report.updated());
  EXPECT_EQ(report.nonfinite(), 1);
  EXPECT_EQ(report.nonfinite_source()->rank, 0);
  EXPECT_EQ(report.nonfinite_source()->parameter, ids[1]);
  EXPECT_EQ(optimizer.update_count(ids[0]), 1);
}

TEST_F(NonfiniteSteps, IgnoreDoesNotLook) {
  auto optimizer = make(Nonfinite::ignore);
  fill(optimizer);
  spoil(optimizer, ids[3], 0, 10, nan);
  const StepReport report = optimizer.step();
  EXPECT_TRUE(report.updated());
  EXPECT_EQ(report.nonfinite(), 0);
  EXPECT_FALSE(report.nonfinite_source().has_value());
}

// Finite gradients whose sum is not: no rank is to blame.
TEST_F(NonfiniteSteps, ASumThatOverflowsNamesNoRank) {
  if (ranks == 1) return;
  auto optimizer = make(Nonfinite::skip);
  fill(optimizer);
  fill_gradient(optimizer, ids[4], [](std::int64_t i) {
    return i == 9 ? double(std::numeric_limits<float>::max()) : 1.0;
  });
  const StepReport report = optimizer.step();
  EXPECT_FALSE(report.updated());
  EXPECT_EQ(report.nonfinite(), 1);
  EXPECT_FALSE(report.nonfinite_source()->rank.has_value());
  EXPECT_EQ(report.nonfinite_source()->parameter, ids[4]);
}

// Case 9: NaN at every step is never silent.
TEST_F(NonfiniteSteps, ThrowsAfterThatManyInARow) {
  auto optimizer = make(Nonfinite::throw_after(3));
  const auto before = read_all(optimizer);
  const auto bad_step = [&] {
    fill(optimizer);
    spoil(optimizer, ids[5], ranks - 1, 77, nan);
    return optimizer.step();
  };
  EXPECT_EQ(bad_step().skipped_in_a_row(), 1);
  EXPECT_EQ(bad_step().skipped_in_a_row(), 2);
  const std::string message = message_of<NonfiniteError>(bad_step);
  for (const std::string& fragment :
       {std::string("3 steps in a row"), std::string("\"p5\""),
        detail::concat("rank ", ranks - 1)})
    EXPECT_NE(message.find(fragment), std::string::npos) << message;
  EXPECT_EQ(read_all(optimizer), before);
  fill(optimizer);
  EXPECT_TRUE(optimizer.step().updated());
  EXPECT_EQ(bad_step().skipped_in_a_row(), 1);
}

// A skipped step clears the gradients, counts nothing and ages nothing.
TEST_F(NonfiniteSteps, ASkippedStepLeavesNoTrace) {
  auto optimizer = make(Nonfinite::skip);
  auto twin = make(Nonfinite::skip);
  for (int step = 0; step < 4; ++step) {
    if (step % 2 == 1) {
      fill(optimizer, infinity);
      optimizer.step();
      const auto view = optimizer.gradient<float*>(ids[0]);
      for (std::size_t i = 0; i < view.extent(0); ++i) ASSERT_EQ(view(i), 0.0f);
    }
    fill(optimizer, 1.0 + step);
    optimizer.step();
    fill(twin, 1.0 + step);
    twin.step();
  }
  EXPECT_EQ(read_all(optimizer), read_all(twin));
  EXPECT_EQ(optimizer.steps(), 4);
}

}  // namespace
}  // namespace kzero::test
