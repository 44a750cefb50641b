// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Training under every partition, against the same training written out here
// in the same precision: the bits do not depend on who owns what.
#include <gtest/gtest.h>

#include <memory>

#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

constexpr double learning_rate = 0.05;
constexpr double momentum = 0.9;
constexpr double weight_decay = 0.1;

double start_of(std::int64_t parameter, std::int64_t i) {
  return double((i * 7 + parameter) % 23) / 8.0 - 1.0;
}

double gradient_of(int step, int rank, std::int64_t parameter, std::int64_t i) {
  return double((i * 13 + 5 * rank + 31 * step + parameter) % 97) / 24.0 - 2.0;
}

// S(a, b) = S(a, a + k) + S(a + k, b), k the largest power of two below b - a.
template <class T, class Value>
T ordered_sum(int a, int b, const Value& value) {
  if (b - a == 1) return T(value(a));
  int k = 1;
  while (2 * k < b - a) k *= 2;
  return ordered_sum<T>(a, a + k, value) + ordered_sum<T>(a + k, b, value);
}

/// Main parameters after so many steps of SGD with momentum, on one rank that
/// has the gradients of all. skipped: a step that leaves it as it is.
template <class T>
std::vector<double> trained_serially(std::int64_t parameter, std::int64_t size,
                                     int ranks, int steps, int skipped) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    T p = T(start_of(parameter, i));
    T buffer = T(0);
    for (int step = 0; step < steps; ++step) {
      if (step == skipped) continue;
      const T sum = ordered_sum<T>(0, ranks, [&](int rank) {
        return gradient_of(step, rank, parameter, i);
      });
      const T decayed = T(weight_decay) * p;
      const T g = sum * T(1.0 / ranks) + decayed;
      const T kept = T(momentum) * buffer;
      buffer = kept + g;
      const T change = T(learning_rate) * buffer;
      p -= change;
    }
    values.push_back(double(p));
  }
  return values;
}

/// All kinds of parameters in memory of the optimizer's and of the caller's.
class Training {
 public:
  Training(std::shared_ptr<Communicator> communicator,
           const Partitioning& partition, std::int64_t bucket_bytes,
           GatherMode gather)
      : rank_(communicator->rank()), ranks_(communicator->size()) {
    ParameterSet set;
    const auto add = [&](const char* name, std::int64_t size,
                         ParameterOptions options) {
      set.add(name, {size}, std::move(options));
    };
    add("single", 300, {});
    add("empty", 0, {});
    add("half", 71, typed(DType::bfloat16));
    add("double", 5000, typed(DType::float64));
    add("frozen", 90, {.frozen = true});
    add("kept", 130, {.unmarked = Unmarked::keep});
    add("chunk", 1, {.chunk = 1});
    own_.add_to(set, "own");
    add("half too", 640, typed(DType::bfloat16));
    set.add("tied", {300}, {.tied_to = "single"});
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = learning_rate,
                       .momentum = momentum,
                       .weight_decay = weight_decay};
    options.gather = gather;
    options.progress = Progress::calls;
    options.plan.bucket_bytes = bucket_bytes;
    partition.set(options.plan);
    optimizer_ = std::make_unique<ShardedOptimizer>(std::move(communicator),
                                                    set, options);
    own_.value.fill([&](auto i) { return start_of(own, i); });
    optimizer_->write_parameters(0, [&](ParameterWriter& writer) {
      for (std::int64_t p = 0; p < own + 2; ++p)
        if (p != own)
          writer.visit({p}, [&](const auto& view) {
            fill_view(view, [&](auto i) { return start_of(p, i); });
          });
    });
    optimizer_->reload_main_from_parameters();
  }

  void step(int step) {
    for (std::int64_t p = 0; p < optimizer_->parameters().size(); ++p) {
      const ParameterInfo& info = optimizer_->parameters()[{p}];
      if (info.frozen || (p == kept && step == skipped)) continue;
      const auto gradient = [&](auto i) {
        return gradient_of(step, rank_, p, i);
      };
      if (p == own)
        own_.gradient.fill(gradient);
      else if (info.storage.index == p)
        fill_gradient(*optimizer_, {p}, gradient);
      optimizer_->mark_ready({p});
    }
    EXPECT_TRUE(optimizer_->step().updated());
  }

  void expect_values(int steps) {
    optimizer_->wait_parameters();
    for (std::int64_t p = 0; p < optimizer_->parameters().size(); ++p) {
      const ParameterInfo& info = optimizer_->parameters()[{p}];
      const std::int64_t storage = info.storage.index;
      const int left_out = p == kept ? skipped : -1;
      auto expected =
          info.dtype == DType::float64
              ? trained_serially<double>(p, info.size, ranks_, steps, left_out)
              : trained_serially<float>(storage, info.size, ranks_,
                                        info.frozen ? 0 : steps, left_out);
      if (info.dtype == DType::bfloat16)
        for (double& value : expected)
          value = double(float(bfloat16(float(value))));
      ASSERT_EQ(
          p == own ? own_.value.values() : read_parameter(*optimizer_, {p}),
          expected)
          << info.name;
    }
    EXPECT_TRUE(own_.gaps_are_whole());
  }

  /// Only its owner has anything of a parameter.
  void expect_owners() const {
    const Plan& plan = optimizer_->plan();
    if (plan.partition() == Partition::elements) return;
    for (std::int64_t p = 0; p < optimizer_->parameters().size(); ++p) {
      const ParameterInfo& info = optimizer_->parameters()[{p}];
      ASSERT_EQ(plan.owner({p}).has_value(), !info.frozen);
      const auto segments = optimizer_->segments({p});
      const bool mine = plan.owner({p}) == rank_ && info.size > 0;
      ASSERT_EQ(segments.size(), mine ? 1u : 0u) << info.name;
      if (mine) {
        ASSERT_EQ(segments[0].in_parameter, (Range{0, info.size}));
      }
    }
  }

  static constexpr int skipped = 1;

 private:
  static constexpr std::int64_t kept = 5;
  static constexpr std::int64_t own = 7;
  const int rank_;
  const int ranks_;
  Own own_{{20, 35}, Order::left};
  std::unique_ptr<ShardedOptimizer> optimizer_;
};

void expect_trained(const std::shared_ptr<Communicator>& communicator) {
  constexpr int steps = 4;
  for (const Partitioning& partition : all_partitions())
    for (const std::int64_t bytes :
         {std::int64_t{1}, std::int64_t{700}, PlanOptions::unlimited})
      for (const GatherMode gather :
           {GatherMode::at_step, GatherMode::overlapped}) {
        SCOPED_TRACE(
            detail::concat(name_of(partition), ", buckets of ", bytes));
        Training training(communicator, partition, bytes, gather);
        for (int step = 0; step < steps; ++step) training.step(step);
        training.expect_values(steps);
        training.expect_owners();
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(Partitions, GiveTheBitsOfASerialRun) { expect_trained(world()); }

TEST(Partitions, GiveTheBitsOfASerialRunOnRanksAlone) {
  expect_trained(make_communicator(MPI_COMM_SELF, {.backend = Backend::self}));
}

TEST(Partitions, AreNamed) {
  for (const Partitioning& partition : all_partitions()) {
    ParameterSet set;
    set.add("w", {3});
    OptimizerOptions options;
    partition.set(options.plan);
    const ShardedOptimizer optimizer(world(), set, options);
    EXPECT_NE(
        optimizer.describe().find("partition: " + name_of(partition) + ";"),
        std::string::npos)
        << optimizer.describe();
    EXPECT_EQ(optimizer.plan().partition(), partition.partition);
    EXPECT_EQ(optimizer.plan().divide(), partition.divide);
  }
}

// Sums over whole parameters, of which some ranks have nothing.
TEST(Partitions, GiveLambTheSameRatios) {
  const auto communicator = world();
  std::vector<std::vector<double>> results;
  for (const Partitioning& partition : all_partitions()) {
    ParameterSet set;
    for (const std::int64_t size : {300, 0, 5000, 7})
      set.add(detail::concat("p", size), {size}, typed(DType::float64));
    OptimizerOptions options;
    options.rule = Lamb{.learning_rate = 0.05};
    options.plan.bucket_bytes = 3000;
    partition.set(options.plan);
    ShardedOptimizer optimizer(communicator, set, options);
    double norm = 0.0;
    for (std::int64_t p = 0; p < set.size(); ++p)
      write_parameter(optimizer, {p}, [&](auto i) { return start_of(p, i); });
    for (int step = 0; step < 3; ++step) {
      for (std::int64_t p = 0; p < set.size(); ++p)
        fill_gradient(optimizer, {p}, [&](auto i) {
          return gradient_of(step, communicator->rank(), p, i);
        });
      norm = optimizer.step().gradient_norm();
    }
    results.push_back(read_all(optimizer));
    results.back().push_back(norm);
  }
  // The order of the sums is another one.
  for (const auto& result : results)
    for (std::size_t i = 0; i < result.size(); ++i)
      ASSERT_NEAR(result[i], results[0][i], 1e-12 * (1 + std::abs(result[i])));
}

}  // namespace
}  // namespace kzero::test
