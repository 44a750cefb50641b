// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Buckets by measurement: what is chosen is a matter of time, that all ranks
// choose the same and that it changes no bits is not.
#include <gtest/gtest.h>

#include "optim/overlap_model.hpp"

namespace kzero::test {
namespace {

std::string line_of(const std::string& text, const std::string& head) {
  const auto begin = text.find(head);
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find('\n', begin) - begin);
}

OptimizerOptions tuned() {
  OptimizerOptions options;
  options.autotune = true;
  return options;
}

TEST(Tuning, IsTheSameOnEveryRankAndSaidByAll) {
  const auto communicator = world();
  ParameterSet set;
  for (int i = 0; i < 12; ++i)
    set.add(detail::concat("w", i), {1 << 20}, typed(DType::bfloat16));
  const ShardedOptimizer optimizer(communicator, set, tuned());
  const std::string line = line_of(optimizer.describe(), "tuned: ");
  if (communicator->size() == 1) {
    EXPECT_EQ(line, "tuned: nothing to tune");
    EXPECT_EQ(optimizer.plan().bucket_bytes(), PlanOptions().bucket_bytes);
    return;
  }
  EXPECT_NE(line.find("buckets of "), std::string::npos) << line;
  EXPECT_NE(line.find(" us"), std::string::npos) << line;
  std::int64_t bytes[] = {optimizer.plan().bucket_bytes(),
                          -optimizer.plan().bucket_bytes()};
  communicator->all_reduce(bytes, Extremum::maximum, {"test"});
  EXPECT_EQ(bytes[0], -bytes[1]);
  EXPECT_GE(bytes[0], 1 << 20);
  // Sums are tried where they go to other nodes.
  const int here = communicator->sharing().ranks;
  const bool has_choice = here > 1 && here < communicator->size();
  EXPECT_EQ(line.find("not added up") != std::string::npos, has_choice) << line;
}

TEST(Tuning, ChangesNoBits) {
  const auto communicator = world();
  const OverlapModel model;
  for (const Mode& mode : all_modes()) {
    ShardedOptimizer optimizer(communicator, model.set, mode.in(tuned()));
    ShardedOptimizer expected(communicator, model.set, mode.in({}));
    for (ShardedOptimizer* each : {&optimizer, &expected}) {
      model.write_start(*each);
      for (int step = 0; step < 3; ++step) {
        model.pass(*each, model.ids, step);
        for (const ParameterId id : model.ids) each->mark_ready(id);
        each->step();
      }
    }
    EXPECT_EQ(read_all(optimizer), read_all(expected));
    EXPECT_EQ(line_of(expected.describe(), "tuned: "), "");
  }
}

// Larger buckets than those that are taken leave nothing behind.
TEST(Tuning, GivesItsMemoryBack) {
  const auto communicator = world();
  ParameterSet set;
  set.add("w", {std::int64_t{16} << 20});
  const ShardedOptimizer optimizer(communicator, set, tuned());
  EXPECT_EQ(communicator->staging_bytes(), 0);
  EXPECT_EQ(optimizer.memory().staging, 0);
}

TEST(Tuning, OfVerySmallModelsEnds) {
  const auto communicator = world();
  for (const std::int64_t size : {0, 1, 65}) {
    ParameterSet set;
    set.add("w", {size});
    ShardedOptimizer optimizer(communicator, set, tuned());
    optimizer.step();
  }
  ShardedOptimizer optimizer(communicator, ParameterSet(), tuned());
  optimizer.step();
}

TEST(Tuning, IsWantedByAllRanksOrNone) {
  const auto communicator = world();
  if (communicator->size() == 1) GTEST_SKIP() << "for more than one rank";
  const OverlapModel model;
  OptimizerOptions options;
  options.autotune = communicator->rank() == 0;
  const std::string message = message_of<InvalidArgument>(
      [&] { ShardedOptimizer(communicator, model.set, options); });
  EXPECT_NE(message.find("autotune"), std::string::npos) << message;
}

}  // namespace
}  // namespace kzero::test
