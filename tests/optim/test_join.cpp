// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Ranks with uneven numbers of batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "optim/overlap_model.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

// Of each rank; beyond four ranks again from the first.
constexpr int batch_counts[] = {3, 4, 7, 2};

int batches_of(int rank) { return batch_counts[rank % 4]; }

int most_batches(int ranks) {
  int most = 0;
  for (int rank = 0; rank < ranks; ++rank)
    most = std::max(most, batches_of(rank));
  return most;
}

/// Every element's gradient in a batch, of small integers: sums are exact.
double gradient(int rank, int batch) { return (rank + 1) * (batch + 2); }

/// What plain descent by a rate of 1/4 gives, from 0.
double expected(int ranks, JoinDivisor divisor) {
  double value = 0.0;
  for (int batch = 0; batch < most_batches(ranks); ++batch) {
    double sum = 0.0;
    int active = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      if (batch >= batches_of(rank)) continue;
      sum += gradient(rank, batch);
      ++active;
    }
    const float mean =
        float(sum) *
        float(1.0 / (divisor == JoinDivisor::active ? active : ranks));
    value = double(float(value) - 0.25f * mean);
  }
  return value;
}

class JoinTest : public testing::Test {
 protected:
  ShardedOptimizer make(const Mode& mode = {}, Partitioning partition = {},
                        OptimizerOptions options = {}) {
    ParameterSet set;
    for (int p = 0; p < 5; ++p) set.add(detail::concat("p", p), {100 * p + 7});
    options.rule = Sgd{.learning_rate = 0.25};
    options.plan.bucket_bytes = 900;
    partition.set(options.plan);
    return ShardedOptimizer(communicator, set, mode.in(options));
  }

  void backward(ShardedOptimizer& optimizer, int batch, double factor = 1.0) {
    for (std::int64_t p = optimizer.parameters().size() - 1; p >= 0; --p) {
      fill_gradient(optimizer, {p},
                    [&](auto) { return factor * gradient(rank, batch); });
      optimizer.mark_ready({p});
    }
  }

  void train(ShardedOptimizer& optimizer, JoinOptions options) {
    Join join(optimizer, options);
    for (int batch = 0; batch < batches_of(rank); ++batch) {
      backward(optimizer, batch);
      optimizer.step();
    }
    join.finish();
  }

  static void expect_all(ShardedOptimizer& optimizer, double value) {
    for (const double each : read_all(optimizer)) ASSERT_EQ(each, value);
  }

  const std::shared_ptr<Communicator> communicator = world();
  const int rank = communicator->rank();
  const int ranks = communicator->size();
};

TEST_F(JoinTest, DividesByActiveRanksOrByAll) {
  for (const JoinDivisor divisor : {JoinDivisor::active, JoinDivisor::all})
    for (const Mode& mode : all_modes())
      for (const Partitioning& partition : all_partitions()) {
        SCOPED_TRACE(detail::concat(name_of(mode), ", ", name_of(partition)));
        auto optimizer = make(mode, partition);
        train(optimizer, {.divisor = divisor});
        expect_all(optimizer, expected(ranks, divisor));
        EXPECT_EQ(optimizer.steps(), most_batches(ranks));
        // The join is over: steps divide by all ranks again.
        backward(optimizer, 0);
        optimizer.step();
        double sum = 0.0;
        for (int r = 0; r < ranks; ++r) sum += gradient(r, 0);
        expect_all(optimizer, float(expected(ranks, divisor)) -
                                  0.25f * (float(sum) * float(1.0 / ranks)));
      }
}

// Rank r's gradients are r + 1 times those of the batch; 3, 4 and 7 batches.
TEST_F(JoinTest, ThreeFourAndSevenBatchesByHand) {
  if (ranks != 3) GTEST_SKIP() << "written for 3 ranks";
  // Batches 0-2: sums (1+2+3)*(2+3+4) = 54, mean 18. Batch 3: ranks 1 and 2,
  // 2*5 + 3*5 = 25, by two 12.5, by three 8.3333. Batches 4-6: rank 2 alone,
  // 3*(6+7+8) = 63, by one 63, by three 21.
  auto by_active = make();
  train(by_active, {});
  expect_all(by_active, -0.25 * (18.0 + 12.5 + 63.0));
  auto by_all = make();
  train(by_all, {.divisor = JoinDivisor::all});
  for (const double value : read_all(by_all))
    ASSERT_NEAR(value, -0.25 * (18.0 + 25.0 / 3.0 + 21.0), 1e-5);
}

TEST_F(JoinTest, SeveralOptimizersInAnyPattern) {
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    auto first = make(mode);
    auto second = make(mode, {Partition::parameters});
    Join join({&first, &second});
    // The second one steps in every other batch only.
    for (int batch = 0; batch < batches_of(rank); ++batch) {
      backward(first, batch);
      const bool both = batch % 2 == 1;
      if (both) backward(second, batch, 2.0);
      first.step();
      if (both) second.step();
    }
    join.finish();
    expect_all(first, expected(ranks, JoinDivisor::active));
    double value = 0.0;
    for (int batch = 1; batch < most_batches(ranks); batch += 2) {
      double sum = 0.0;
      int active = 0;
      for (int r = 0; r < ranks; ++r) {
        if (batch >= batches_of(r)) continue;
        sum += 2.0 * gradient(r, batch);
        ++active;
      }
      value = double(float(value) - 0.25f * (float(sum) * float(1.0 / active)));
    }
    expect_all(second, value);
  }
}

TEST_F(JoinTest, SumsAndOwnDivisorsStay) {
  OptimizerOptions options;
  options.reduction = Reduction::divide_by(2.0);
  auto optimizer = make({}, {}, options);
  train(optimizer, {});
  double sum = 0.0;
  for (int r = 0; r < ranks; ++r)
    for (int batch = 0; batch < batches_of(r); ++batch)
      sum += gradient(r, batch);
  expect_all(optimizer, -0.125 * sum);
}

// A schedule of rates is known to the ranks that still step alone.
TEST_F(JoinTest, RatesAreThoseOfActiveRanks) {
  auto optimizer = make();
  Join join(optimizer, {.divisor = JoinDivisor::active});
  for (int batch = 0; batch < batches_of(rank); ++batch) {
    optimizer.group("default").set("learning_rate", batch % 2 == 0 ? 0.5 : 2.0);
    backward(optimizer, 0);
    optimizer.step();
  }
  join.finish();
  double value = 0.0;
  for (int batch = 0; batch < most_batches(ranks); ++batch) {
    double sum = 0.0;
    int active = 0;
    for (int r = 0; r < ranks; ++r) {
      if (batch >= batches_of(r)) continue;
      sum += gradient(r, 0);
      ++active;
    }
    value = double(float(value) - (batch % 2 == 0 ? 0.5f : 2.0f) *
                                      (float(sum) * float(1.0 / active)));
  }
  expect_all(optimizer, value);
}

// What nobody who still steps has marked stays as it is.
TEST_F(JoinTest, KeptParametersAreKept) {
  ParameterSet set;
  set.add("used", {10});
  ParameterOptions keep;
  keep.unmarked = Unmarked::keep;
  set.add("kept", {300}, keep);
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 0.25, .weight_decay = 0.5};
  ShardedOptimizer optimizer(communicator, set, options);
  write_parameter(optimizer, {1}, [](auto) { return 8.0; });
  Join join(optimizer);
  for (int batch = 0; batch < batches_of(rank); ++batch) {
    fill_gradient(optimizer, {0}, [](auto) { return 1.0; });
    optimizer.mark_ready({0});
    optimizer.step();
  }
  join.finish();
  for (const double each : read_parameter(optimizer, {1})) ASSERT_EQ(each, 8.0);
  EXPECT_EQ(optimizer.update_count({0}), most_batches(ranks));
  EXPECT_EQ(optimizer.update_count({1}), 0);
}

TEST_F(JoinTest, OwnMemoryOfARankThatRanOutIsNotRead) {
  std::vector<float> value(50, 0.0f);
  std::vector<float> slope(50, 0.0f);
  ParameterSet set;
  set.add("w", ExternalArray{value.data(), DType::float32, {50}, {}, nullptr},
          ExternalArray{slope.data(), DType::float32, {50}, {}, nullptr});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 0.25};
  ShardedOptimizer optimizer(communicator, set, options);
  Join join(optimizer);
  for (int batch = 0; batch < batches_of(rank); ++batch) {
    std::fill(slope.begin(), slope.end(), float(gradient(rank, batch)));
    optimizer.step();
  }
  std::fill(slope.begin(), slope.end(), 1e30f);
  join.finish();
  for (const float each : value)
    ASSERT_EQ(double(each), expected(ranks, JoinDivisor::active));
  for (const float each : slope) ASSERT_EQ(each, 1e30f);
}

TEST_F(JoinTest, RefusesUnevenInputsOnEveryRank) {
  if (ranks == 1) GTEST_SKIP() << "one rank is never uneven";
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    auto optimizer = make(mode);
    {
      Join join(optimizer, {.uneven = Uneven::refuse});
      const int even = 2;
      for (int batch = 0; batch < even; ++batch) {
        backward(optimizer, batch);
        optimizer.step();
      }
      const std::string message = message_of<InvalidArgument>([&] {
        if (rank == 0) join.finish();
        backward(optimizer, even);
        optimizer.step();
      });
      EXPECT_NE(message.find("rank 0 has no more inputs"), std::string::npos)
          << message;
    }
    // Nothing of that step was done, and training goes on. What was sent for it
    // counts.
    const double before = [&] {
      double value = 0.0;
      for (int batch = 0; batch < 2; ++batch) {
        double sum = 0.0;
        for (int r = 0; r < ranks; ++r) sum += gradient(r, batch);
        value =
            double(float(value) - 0.25f * (float(sum) * float(1.0 / ranks)));
      }
      return value;
    }();
    expect_all(optimizer, before);
    EXPECT_EQ(optimizer.steps(), 2);
    backward(optimizer, 0);
    const std::int64_t with_refused = optimizer.step().bytes_sent();
    backward(optimizer, 0);
    EXPECT_GT(with_refused, optimizer.step().bytes_sent());
    EXPECT_EQ(optimizer.steps(), 4);
  }
}

/// Or, between nodes, one that waits for it or has done so.
bool names_rank_0(const std::string& message) {
  for (const char* part :
       {"no answer from rank 0", "which may itself wait for another rank",
        "has given the communicator up"})
    if (message.find(part) != std::string::npos) return true;
  return false;
}

// Case 18, without a join: who goes on is told whom it waits for.
TEST_F(JoinTest, WithoutAJoinUnevenInputsAreAnError) {
  if (ranks == 1) GTEST_SKIP() << "one rank is never uneven";
  CommunicatorOptions impatient;
  impatient.timeout = std::chrono::milliseconds(700);
  ParameterSet set;
  set.add("w", {100});
  ShardedOptimizer optimizer(make_communicator(MPI_COMM_WORLD, impatient), set);
  for (int batch = 0; batch < 3; ++batch) optimizer.step();
  if (rank == 0) return;  // has 3 batches, the others 4
  const std::string message =
      message_of<CommunicationError>([&] { optimizer.step(); });
  EXPECT_NE(message.find("timed out after 0.7 s"), std::string::npos)
      << message;
  EXPECT_TRUE(names_rank_0(message)) << message;
}

// A join that is left without finish() is no exception.
TEST_F(JoinTest, WhoLeavesIsMissed) {
  if (ranks == 1) GTEST_SKIP() << "nobody waits";
  CommunicatorOptions impatient;
  impatient.timeout = std::chrono::milliseconds(700);
  ParameterSet set;
  set.add("w", {100});
  ShardedOptimizer optimizer(make_communicator(MPI_COMM_WORLD, impatient), set);
  {
    Join join(optimizer);
    optimizer.step();
    if (rank != 0) {
      const std::string message =
          message_of<CommunicationError>([&] { optimizer.step(); });
      EXPECT_TRUE(names_rank_0(message)) << message;
    }
  }
}

TEST_F(JoinTest, SkippedStepsAreSkippedByAll) {
  OptimizerOptions options;
  options.nonfinite = Nonfinite::skip;
  auto optimizer = make({}, {}, options);
  Join join(optimizer);
  int skipped = 0;
  for (int batch = 0; batch < batches_of(rank); ++batch) {
    const bool last_of_all = batch == most_batches(ranks) - 1;
    fill_gradient(optimizer, {0}, [&](auto) {
      return last_of_all ? std::numeric_limits<double>::infinity() : 0.0;
    });
    optimizer.mark_ready({0});
    skipped += optimizer.step().updated() ? 0 : 1;
  }
  join.finish();
  EXPECT_EQ(optimizer.steps(), most_batches(ranks) - 1);
  EXPECT_EQ(skipped, batches_of(rank) == most_batches(ranks) ? 1 : 0);
}

TEST_F(JoinTest, WrongCallsAreRefusedOnEveryRank) {
  auto first = make();
  auto second = make();
  EXPECT_THROW(Join(std::vector<ShardedOptimizer*>{}), InvalidArgument);
  EXPECT_THROW(Join({&first, nullptr}), InvalidArgument);
  EXPECT_THROW(Join({&first, &first}), InvalidArgument);
  EXPECT_THROW(Join(first, {.divisor = JoinDivisor(7)}), InvalidArgument);
  EXPECT_THROW(Join(first, {.uneven = Uneven(7)}), InvalidArgument);
  if (ranks > 1) {
    const std::string message = message_of<InvalidArgument>([&] {
      Join(first,
           {.divisor = rank == 0 ? JoinDivisor::all : JoinDivisor::active});
    });
    EXPECT_NE(message.find("divisor"), std::string::npos) << message;
  }
  {
    Join join({&first, &second});
    EXPECT_THROW(Join{first}, InvalidArgument);
    if (ranks > 1) {
      const std::string message = message_of<InvalidArgument>(
          [&] { (rank == 0 ? first : second).step(); });
      EXPECT_NE(message.find("same order"), std::string::npos) << message;
    }
    // A rank that has marked does not run out.
    if (rank == ranks - 1) {
      first.mark_ready({0});
      EXPECT_THROW(join.finish(), InvalidArgument);
      first.step();
    } else {
      EXPECT_THROW(first.step(), InvalidArgument);
      first.step();
    }
    join.finish();
    EXPECT_THROW(join.finish(), InvalidArgument);
  }
  EXPECT_EQ(first.steps(), 1);
  EXPECT_EQ(second.steps(), 0);
  Join again(first);
  again.finish();
}

}  // namespace
}  // namespace kzero::test
