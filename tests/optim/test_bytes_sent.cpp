// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a step sends, summed over the ranks, is the least that there is: every
// gradient goes from each rank to its owner, every parameter from its owner to
// each rank.
#include <gtest/gtest.h>

#include <kzero/simulated_communicator.hpp>
#include <limits>

#include "optim/overlap_model.hpp"
#include "support/own_memory.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

std::int64_t summed(Communicator& communicator, std::int64_t bytes) {
  communicator.all_reduce_sum(std::span(&bytes, 1), {"test"});
  return bytes;
}

struct Least {
  std::int64_t gradients = 0;
  std::int64_t parameters = 0;
};

/// Of all ranks: (P - 1) N elements of trained buckets, padding included, each
/// way.
Least least_of(const Plan& plan) {
  Least least;
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
    const std::int64_t elements =
        (plan.ranks() - 1) *
        plan.buckets()[static_cast<std::size_t>(b)].range.size();
    least.gradients += elements * size_of(plan.buffer_of(b).gradient_dtype);
    least.parameters += elements * size_of(plan.buffer_of(b).dtype);
  }
  return least;
}

OptimizerOptions options_of(const Partitioning& partition,
                            std::int64_t bucket_bytes) {
  OptimizerOptions options;
  options.rule = Lamb{};
  options.clip_norm = 1.0;
  options.nonfinite = Nonfinite::skip;
  options.plan.bucket_bytes = bucket_bytes;
  partition.set(options.plan);
  return options;
}

/// Where nothing has to be decided before an update.
OptimizerOptions undecided(const Partitioning& partition) {
  OptimizerOptions options = options_of(partition, 600);
  options.rule = AdamW{};
  options.clip_norm.reset();
  options.nonfinite = Nonfinite::report;
  return options;
}

TEST(BytesSent, InAStepAreTheLeast) {
  const auto communicator = world();
  const OverlapModel model;
  for (const Partitioning& partition : all_partitions())
    for (const std::int64_t bytes : {1, 600, 100'000}) {
      SCOPED_TRACE(detail::concat(name_of(partition), ", buckets of ", bytes));
      ShardedOptimizer optimizer(communicator, model.set,
                                 options_of(partition, bytes));
      const Least least = least_of(optimizer.plan());
      EXPECT_GT(least.gradients, communicator->size() == 1 ? -1 : 0);
      model.write_start(optimizer);  // is no part of it
      for (int step = 0; step < 3; ++step) {
        model.pass(optimizer, model.ids, step);
        EXPECT_EQ(summed(*communicator, optimizer.step().bytes_sent()),
                  least.gradients + least.parameters);
      }
    }
}

// Gathers that a step leaves under way count in the next one, which ends with
// one that is skipped.
TEST(BytesSent, OfOverlappedStepsAreTheLeast) {
  const auto communicator = world();
  OverlapModel model;
  for (const Partitioning& partition : all_partitions())
    for (const Mode& mode : all_modes(Decision::needed)) {
      SCOPED_TRACE(detail::concat(name_of(partition), ", ", name_of(mode)));
      ShardedOptimizer optimizer(communicator, model.set,
                                 mode.in(options_of(partition, 600)));
      const Least least = least_of(optimizer.plan());
      constexpr int steps = 3;
      std::int64_t sent = 0;
      for (int step = 0; step <= steps; ++step) {
        for (const ParameterId id : model.ids) {
          fill_gradient(optimizer, id, [&](auto) {
            return step < steps ? 1.0 : std::numeric_limits<double>::infinity();
          });
          optimizer.mark_ready(id);
        }
        const StepReport report = optimizer.step();
        EXPECT_EQ(report.updated(), step < steps);
        sent += report.bytes_sent();
      }
      EXPECT_EQ(summed(*communicator, sent),
                (steps + 1) * least.gradients + steps * least.parameters);
    }
}

// Some of them before step().
TEST(BytesSent, OfInterleavedStepsAreTheLeast) {
  const auto communicator = world();
  const OverlapModel model;
  for (const Partitioning& partition : all_partitions())
    for (const Progress progress : {Progress::calls, Progress::thread}) {
      const Mode mode{Schedule::interleaved, GatherMode::at_step, progress};
      SCOPED_TRACE(detail::concat(name_of(partition), ", ", name_of(mode)));
      ShardedOptimizer optimizer(communicator, model.set,
                                 mode.in(undecided(partition)));
      const Least least = least_of(optimizer.plan());
      for (int step = 0; step < 3; ++step) {
        for (const ParameterId id : model.ids) optimizer.mark_ready(id);
        EXPECT_EQ(summed(*communicator, optimizer.step().bytes_sent()),
                  least.gradients + least.parameters);
      }
    }
}

TEST(BytesSent, OfTheCallersMemoryAreTheLeast) {
  const auto communicator = world();
  for (const Partitioning& partition : all_partitions()) {
    SCOPED_TRACE(name_of(partition));
    const Own first({30, 40}, Order::left, DType::bfloat16);
    const Own second({2500}, Order::right);
    ParameterSet set;
    first.add_to(set, "first");
    second.add_to(set, "second");
    ShardedOptimizer optimizer(communicator, set, options_of(partition, 3000));
    const Least least = least_of(optimizer.plan());
    for (int step = 0; step < 2; ++step)
      EXPECT_EQ(summed(*communicator, optimizer.step().bytes_sent()),
                least.gradients + least.parameters);
  }
}

// The communicator that both are given counts what both send.
TEST(BytesSent, AreThoseOfOneOptimizer) {
  const auto communicator = world();
  const OverlapModel model;
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    const auto options = mode.in(undecided(Partitioning()));
    ShardedOptimizer one(communicator, model.set, options);
    ShardedOptimizer other(communicator, model.set, options);
    std::int64_t first = 0;
    for (int step = 0; step < 3; ++step) {
      other.step();
      other.wait_parameters();
      const std::int64_t bytes = one.step().bytes_sent();
      one.wait_parameters();
      if (step == 0) first = bytes;
      if (mode.gather == GatherMode::at_step) {
        EXPECT_EQ(bytes, first);
      }
    }
    const Least least = least_of(one.plan());
    if (mode.gather == GatherMode::at_step) {
      EXPECT_EQ(summed(*communicator, first),
                least.gradients + least.parameters);
    }
  }
}

TEST(BytesSent, OfAStepThatThrewAreThoseOfTheNextOne) {
  const auto communicator = world();
  if (communicator->size() == 1) return;
  const OverlapModel model;
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    ShardedOptimizer optimizer(communicator, model.set,
                               mode.in(undecided(Partitioning())));
    const Least least = least_of(optimizer.plan());
    Group group = optimizer.group("default");
    if (communicator->rank() == 0) group.set("learning_rate", 0.5);
    EXPECT_THROW(optimizer.step(), InvalidArgument);
    group.set("learning_rate", 0.25);
    const std::int64_t sent =
        summed(*communicator, optimizer.step().bytes_sent());
    if (mode.gather == GatherMode::at_step) {
      EXPECT_EQ(sent, 2 * least.gradients + least.parameters);
    } else {
      EXPECT_GE(sent, 2 * least.gradients);
    }
  }
}

TEST(BytesSent, OnASimulatedLinkAreThoseOfTheData) {
  const auto inner = world();
  const auto communicator = make_simulated_communicator(
      inner,
      {.latency = std::chrono::nanoseconds(0), .bytes_per_second = 1e15});
  const OverlapModel model;
  ShardedOptimizer optimizer(communicator, model.set,
                             options_of(Partitioning(), 600));
  const Least least = least_of(optimizer.plan());
  EXPECT_EQ(summed(*communicator, optimizer.step().bytes_sent()),
            least.gradients + least.parameters);
  EXPECT_EQ(summed(*communicator, communicator->bytes_sent()),
            least.gradients + least.parameters);
}

}  // namespace
}  // namespace kzero::test
