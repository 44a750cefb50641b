// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Optimizers that cannot be made.
#include <gtest/gtest.h>

#include <kzero/kzero.hpp>
#include <limits>

#include "comm/world.hpp"
#include "core/message.hpp"
#include "support/optimizer_support.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

using detail::concat;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

ParameterSet one(std::int64_t size = 4, ParameterOptions options = {}) {
  ParameterSet set;
  set.add("w", {size}, options);
  return set;
}

class WrongConstruction : public testing::Test {
 protected:
  /// A row for the options that change() makes wrong.
  WrongCall row(const char* name, std::function<void(OptimizerOptions&)> change,
                std::vector<std::string> says) {
    return {name,
            [=, this] {
              OptimizerOptions options;
              change(options);
              ShardedOptimizer(communicator, one(), options);
            },
            std::move(says), Found::collective};
  }

  /// A row for a model-parallel group of all ranks, data-parallel alone.
  WrongCall in_model(const char* name, std::function<void(ParameterSet&)> fill,
                     std::vector<std::string> says) {
    return {name,
            [=, this] {
              ParameterSet set;
              fill(set);
              OptimizerOptions options;
              options.model_parallel = communicator;
              ShardedOptimizer(alone, set, options);
            },
            std::move(says), Found::collective};
  }

  void expect_all_refused(const WrongCalls& rows) {
    expect_refused(rows, [this] {
      // The communicators are none the worse.
      ShardedOptimizer optimizer(communicator, one());
      EXPECT_TRUE(optimizer.step().updated());
    });
  }

  std::shared_ptr<Communicator> communicator = world();
  std::shared_ptr<Communicator> alone =
      make_communicator(MPI_COMM_SELF, {Backend::self});
  const int rank = communicator->rank();
  const int ranks = communicator->size();
  const bool is_last = rank == ranks - 1;
};

TEST_F(WrongConstruction, ByOptions) {
  WrongCalls rows = {
      {"a null communicator",
       [] { ShardedOptimizer(nullptr, one()); },
       {"communicator is null", "make_communicator"}},
      {"a null communicator, on an instance",
       [] { ShardedOptimizer(nullptr, one(), {}, ExecutionSpace()); },
       {"communicator is null", "make_communicator"}},
      row("unknown schedule",
          [](auto& o) { o.schedule = static_cast<Schedule>(3); },
          {"OptimizerOptions::schedule", "from 0 to 2", "got 3"}),
      row("unknown gather",
          [](auto& o) { o.gather = static_cast<GatherMode>(-1); },
          {"OptimizerOptions::gather", "from 0 to 1", "got -1"}),
      row("unknown progress",
          [](auto& o) { o.progress = static_cast<Progress>(3); },
          {"OptimizerOptions::progress", "from 0 to 2", "got 3"}),
      row("unknown partition",
          [](auto& o) { o.plan.partition = static_cast<Partition>(5); },
          {"PlanOptions::partition", "code 5"}),
      row("divide without buckets", [](auto& o) { o.plan.divide = true; },
          {"PlanOptions::divide", "Partition::buckets"}),
      row("other ranks", [&](auto& o) { o.plan.ranks = ranks + 1; },
          {concat("plan.ranks is ", ranks + 1), concat("has ", ranks)}),
      row("negative ranks", [](auto& o) { o.plan.ranks = -2; },
          {"plan.ranks is -2"}),
      row("no bucket_bytes", [](auto& o) { o.plan.bucket_bytes = 0; },
          {"PlanOptions::bucket_bytes", "got 0"}),
      row("an order that is too long",
          [](auto& o) {
            o.plan.order = {{0}, {0}};
          },
          {"PlanOptions::order", "expected 1", "got 2"}),
      row("an order with a foreign id", [](auto& o) { o.plan.order = {{8}}; },
          {"PlanOptions::order", "got 8"}),
      row("a group of no name", [](auto& o) { o.groups[""] = Sgd{}; },
          {"OptimizerOptions::groups", "sgd", "\"\""}),
      row("dynamic scaler that reports",
          [](auto& o) {
            o.scaler = Scaler::dynamic();
            o.nonfinite = Nonfinite::report;
          },
          {"nonfinite is report", "dynamic scaler"}),
      row("dynamic scaler that ignores",
          [](auto& o) {
            o.scaler = Scaler::dynamic();
            o.nonfinite = Nonfinite::ignore;
          },
          {"nonfinite is ignore", "dynamic scaler"}),
      row("model_parallel of the same communicator",
          [&](auto& o) { o.model_parallel = communicator; },
          {"OptimizerOptions::model_parallel", "got the same"}),
  };
  for (const double clip : {0.0, -1.0, nan, infinity, -infinity})
    rows.push_back(row("clip_norm", [=](auto& o) { o.clip_norm = clip; },
                       {concat("clip_norm is ", clip, ", expected")}));
  expect_all_refused(rows);
}

TEST_F(WrongConstruction, ByTheModel) {
  expect_all_refused({
      {"tied to what is not there",
       [&] { ShardedOptimizer(communicator, one(4, {.tied_to = "emb"})); },
       {"\"w\"", "\"emb\"", "model_parallel"},
       Found::collective},
      {"more than the memory of any machine",
       [&] { ShardedOptimizer(communicator, one(std::int64_t{1} << 50)); },
       {"memory for the optimizer", "no memory for", "45035996273"},
       Found::collective},
      {"more than can be counted",
       [&] {
         ShardedOptimizer(communicator, one((std::int64_t{1} << 59) + 1));
       },
       {"\"w\"", "2^59", "576460752303423489"},
       Found::collective},
  });
}

TEST_F(WrongConstruction, ByOneRank) {
  if (ranks == 1) GTEST_SKIP() << "for more than one rank";
  const std::string found = concat("found on rank ", ranks - 1);
  const auto on_last = [&](const char* name,
                           std::function<void(OptimizerOptions&)> change,
                           std::vector<std::string> says) {
    says.push_back(found);
    return row(
        name,
        [=, this](auto& o) {
          if (is_last) change(o);
        },
        says);
  };
  expect_all_refused({
      on_last("unknown schedule",
              [](auto& o) { o.schedule = static_cast<Schedule>(3); },
              {"OptimizerOptions::schedule", "from 0 to 2", "got 3"}),
      on_last("negative clip_norm", [](auto& o) { o.clip_norm = -3.0; },
              {"clip_norm is -3"}),
      on_last("no bucket_bytes", [](auto& o) { o.plan.bucket_bytes = -4; },
              {"PlanOptions::bucket_bytes", "got -4"}),
      on_last("an order with a foreign id",
              [](auto& o) { o.plan.order = {{8}}; },
              {"PlanOptions::order", "got 8"}),
      on_last("dynamic scaler that reports",
              [](auto& o) {
                o.scaler = Scaler::dynamic();
                o.nonfinite = Nonfinite::report;
              },
              {"nonfinite is report", "dynamic scaler"}),
      on_last("model_parallel of the same communicator",
              [&](auto& o) { o.model_parallel = communicator; },
              {"OptimizerOptions::model_parallel"}),
      {"tied to what is not there",
       [&] {
         ShardedOptimizer(communicator,
                          is_last ? one(4, {.tied_to = "emb"}) : one());
       },
       {"\"w\"", "\"emb\"", found},
       Found::collective},
      {"memory for one rank only",
       [&] {
         ShardedOptimizer(communicator,
                          one(is_last ? (std::int64_t{1} << 59) + 1 : 4));
       },
       {"\"w\"", "2^59", found},
       Found::collective},
  });
}

TEST_F(WrongConstruction, OfModelParallelGroups) {
  if (ranks == 1) GTEST_SKIP() << "for more than one rank";
  const std::string last = concat("rank ", ranks - 1);
  const ParameterOptions split = {.model_parallel = ModelParallel::split};
  const std::string one_rank = "a group of 1 ranks";
  expect_all_refused({
      row("a group on the last rank only",
          [&](auto& o) {
            if (is_last) o.model_parallel = alone;
          },
          {"model_parallel = none", last + " has model_parallel = ", one_rank}),
      row("a group on rank 0 only",
          [&](auto& o) {
            if (rank == 0) o.model_parallel = alone;
          },
          {"rank 0 has model_parallel = " + one_rank, "= none"}),
      in_model("replicated, of other extents",
               [&](auto& set) { set.add("w", {is_last ? 5 : 4}); },
               {"\"w\"", "replicated", "(4)", "(5)", last}),
      in_model("replicated, of another type",
               [&](auto& set) {
                 set.add("w", {4},
                         typed(is_last ? DType::float64 : DType::float32));
               },
               {"\"w\"", "float32", "float64", last}),
      in_model("split here and replicated there",
               [&](auto& set) {
                 set.add("w", {4}, is_last ? split : ParameterOptions());
               },
               {"\"w\"", "replicated", "split", last}),
      in_model("tied to what nobody has",
               [&](auto& set) {
                 set.add("w", {4});
                 if (is_last) set.add("copy", {4}, {.tied_to = "emb"});
               },
               {"\"copy\"", "\"emb\"", last}),
      in_model("tied to another shape",
               [&](auto& set) {
                 if (is_last)
                   set.add("copy", {5}, {.tied_to = "emb"});
                 else
                   set.add("emb", {4});
               },
               {"\"copy\"", "\"emb\"", "(5)", "(4)"}),
      {"another clip_norm in the group",
       [&] {
         OptimizerOptions options;
         options.model_parallel = communicator;
         options.clip_norm = is_last ? 2.0 : 1.0;
         ShardedOptimizer(alone, one(), options);
       },
       {"clip_norm = 1", "clip_norm = 2", last},
       Found::collective},
      {"a wrong clip_norm in the group",
       [&] {
         OptimizerOptions options;
         options.model_parallel = communicator;
         options.clip_norm = is_last ? -2.0 : 1.0;
         ShardedOptimizer(alone, one(), options);
       },
       {"clip_norm is -2", "found on " + last},
       Found::collective},
  });
}

}  // namespace
}  // namespace kzero::test
