// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a step does with parameters that are not marked, kept, frozen or tied.
#include "optim/marks.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

ParameterOptions kept() {
  ParameterOptions options;
  options.unmarked = Unmarked::keep;
  return options;
}

// Decay moves a parameter even when its gradient is zero.
OptimizerOptions decaying() {
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.1, .weight_decay = 0.5};
  options.plan.bucket_bytes = 600;
  return options;
}

struct Model {
  ParameterSet set;
  std::vector<ParameterId> ids;
  Model(std::int64_t count, const ParameterOptions& options) {
    for (std::int64_t i = 0; i < count; ++i)
      ids.push_back(set.add(detail::concat("p", i), {101}, options));
  }
};

TEST(Marks, KeptParametersStayAsTheyAreWhenNoRankMarksThem) {
  const Model model(70, kept());
  ShardedOptimizer optimizer(world(), model.set, decaying());
  for (const ParameterId id : model.ids)
    write_parameter(optimizer, id, [](auto) { return 1.0; });
  const auto before = read_parameter(optimizer, model.ids[69]);
  for (int step = 1; step <= 3; ++step) {
    for (const ParameterId id : model.ids)
      fill_gradient(optimizer, id, [&](auto) {
        return id == model.ids[69] ? nan : 1.0;  // nobody looks at it
      });
    for (const ParameterId id : model.ids)
      if (id != model.ids[69]) optimizer.mark_ready(id);
    const StepReport report = optimizer.step();
    EXPECT_EQ(report.nonfinite(), 0);
    EXPECT_EQ(report.zero_count(), 0);
    EXPECT_NEAR(report.gradient_norm(), std::sqrt(69.0 * 101.0), 1e-4);
    EXPECT_EQ(read_parameter(optimizer, model.ids[69]), before);
    EXPECT_EQ(optimizer.update_count(model.ids[69]), 0);
    EXPECT_EQ(optimizer.update_count(model.ids[0]), step);
    for (const auto& view : optimizer.averaged_gradient<float>(model.ids[69]))
      for (std::size_t i = 0; i < view.extent(0); ++i) EXPECT_EQ(view(i), 0.0f);
  }
}

// It then behaves as one of a separate optimizer that began when it did.
TEST(Marks, KeptParametersDoNotAge) {
  const Model two(2, kept());
  ShardedOptimizer optimizer(world(), two.set, decaying());
  const Model one(1, kept());
  ShardedOptimizer young(world(), one.set, decaying());
  const auto gradient = [](int step) {
    return [step](std::int64_t i) { return double(i % 5 + step) / 8.0; };
  };
  for (int step = 0; step < 8; ++step) {
    fill_gradient(optimizer, two.ids[0], gradient(step));
    optimizer.mark_ready(two.ids[0]);
    if (step >= 5) {
      fill_gradient(optimizer, two.ids[1], gradient(step));
      optimizer.mark_ready(two.ids[1]);
      fill_gradient(young, one.ids[0], gradient(step));
      young.step();
    }
    optimizer.step();
  }
  EXPECT_EQ(read_parameter(optimizer, two.ids[1]),
            read_parameter(young, one.ids[0]));
  EXPECT_EQ(optimizer.update_count(two.ids[0]), 8);
  EXPECT_EQ(optimizer.update_count(two.ids[1]), 3);
}

TEST(Marks, OneRankWithAGradientIsEnoughToUpdate) {
  const auto communicator = world();
  const Model model(3, kept());
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  ShardedOptimizer optimizer(communicator, model.set, options);
  const bool last = communicator->rank() == communicator->size() - 1;
  for (const ParameterId id : model.ids)
    fill_gradient(optimizer, id, [&](auto) { return 2.0; });
  // Every rank marks 0; one marks 1 too; nobody marks 2.
  optimizer.mark_ready(model.ids[0]);
  if (last) optimizer.mark_ready(model.ids[1]);
  optimizer.step();
  EXPECT_EQ(read_parameter(optimizer, model.ids[0])[100], -2.0);
  EXPECT_NEAR(read_parameter(optimizer, model.ids[1])[100],
              -2.0 / communicator->size(), 1e-6);
  EXPECT_EQ(read_parameter(optimizer, model.ids[2])[100], 0.0);
  // A rank that marks nothing has everything marked.
  for (const ParameterId id : model.ids)
    fill_gradient(optimizer, id, [&](auto) { return 2.0; });
  optimizer.step();
  EXPECT_EQ(read_parameter(optimizer, model.ids[2])[0], -2.0);
}

TEST(Marks, WithClippingAndSkippingToo) {
  const Model model(2, kept());
  OptimizerOptions options;
  options.rule = Lamb{.learning_rate = 0.5, .weight_decay = 0.5};
  options.clip_norm = 1.0;
  options.nonfinite = Nonfinite::skip;
  ShardedOptimizer optimizer(world(), model.set, options);
  for (const ParameterId id : model.ids)
    write_parameter(optimizer, id, [](auto) { return 1.0; });
  fill_gradient(optimizer, model.ids[0], [](auto) { return 3.0; });
  fill_gradient(optimizer, model.ids[1], [](auto) { return nan; });
  optimizer.mark_ready(model.ids[0]);
  EXPECT_TRUE(optimizer.step().updated());
  EXPECT_NE(read_parameter(optimizer, model.ids[0])[0], 1.0);
  EXPECT_EQ(read_parameter(optimizer, model.ids[1])[0], 1.0);
}

// Marks stand when a step has found that hyperparameters differ, so that it can
// be made again; or the caller begins anew.
TEST(Marks, StandAfterADisagreement) {
  const auto communicator = world();
  if (communicator->size() == 1) return;
  for (const bool anew : {false, true}) {
    const Model model(2, kept());
    ShardedOptimizer optimizer(communicator, model.set, decaying());
    for (const ParameterId id : model.ids)
      write_parameter(optimizer, id, [](auto) { return 1.0; });
    fill_gradient(optimizer, model.ids[0], [](auto) { return 1.0; });
    optimizer.mark_ready(model.ids[0]);
    Group group = optimizer.group("default");
    EXPECT_THROW(group.set("learning_rate", 0.5), InvalidArgument);
    optimizer = ShardedOptimizer(communicator, model.set, decaying());
    for (const ParameterId id : model.ids)
      write_parameter(optimizer, id, [](auto) { return 1.0; });
    group = optimizer.group("default");
    if (communicator->rank() == 1) group.set("learning_rate", 0.5);
    fill_gradient(optimizer, model.ids[0], [](auto) { return 1.0; });
    optimizer.mark_ready(model.ids[0]);
    EXPECT_THROW(optimizer.step(), InvalidArgument);
    group.set("learning_rate", 0.1);
    if (anew) {
      optimizer.zero_gradients();
      fill_gradient(optimizer, model.ids[0], [](auto) { return 1.0; });
      optimizer.mark_ready(model.ids[0]);
    }
    EXPECT_TRUE(optimizer.step().updated());
    EXPECT_EQ(optimizer.update_count(model.ids[0]), 1);
    EXPECT_EQ(optimizer.update_count(model.ids[1]), 0);
    EXPECT_EQ(read_parameter(optimizer, model.ids[1])[5], 1.0);
  }
}

TEST(Marks, FrozenParametersHaveAValueOnly) {
  ParameterOptions frozen = typed(DType::bfloat16);
  frozen.frozen = true;
  frozen.group = "table";
  ParameterSet set;
  const auto table = set.add("table", {64, 50}, frozen);
  const auto weight = set.add("weight", {64});
  ShardedOptimizer optimizer(world(), set, decaying());
  write_parameter(optimizer, table, [](auto i) { return double(i % 128); });
  const Memory memory = optimizer.memory();
  EXPECT_GE(memory.parameters, 2 * 64 * 50);
  EXPECT_LE(memory.gradients, 4 * 64 * optimizer.plan().ranks());
  EXPECT_TRUE(optimizer.segments(table).empty());
  EXPECT_THROW(optimizer.gradient<float*>(table), InvalidArgument);
  EXPECT_THROW(optimizer.mark_ready(table), InvalidArgument);
  fill_gradient(optimizer, weight, [](auto) { return 1.0; });
  optimizer.mark_ready(weight);  // that is all there is to mark
  const StepReport report = optimizer.step();
  EXPECT_NEAR(report.gradient_norm(), 8.0, 1e-6);
  EXPECT_EQ(read_parameter(optimizer, table)[127], 127.0);
  EXPECT_EQ(optimizer.update_count(table), 0);
  EXPECT_THROW(optimizer.averaged_gradient<float>(table), InvalidArgument);
  int elements = -1;
  optimizer.visit(table, [&](const auto&, const auto& gradient) {
    elements = int(gradient.extent(0));
  });
  EXPECT_EQ(elements, 0);
}

TEST(Marks, AModelMayBeAllFrozen) {
  ParameterOptions frozen;
  frozen.frozen = true;
  ParameterSet set;
  const auto id = set.add("w", {5}, frozen);
  ShardedOptimizer optimizer(world(), set, decaying());
  write_parameter(optimizer, id, [](auto i) { return double(i); });
  EXPECT_TRUE(optimizer.step().updated());
  EXPECT_EQ(read_parameter(optimizer, id)[4], 4.0);
}

TEST(Marks, TwoNamesOfOneStorage) {
  ParameterSet set;
  const auto first = set.add("embedding", {10, 7});
  set.add("between", {33});
  ParameterOptions tied;
  tied.tied_to = "embedding";
  const auto second = set.add("output", {10, 7}, tied);
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  ShardedOptimizer optimizer(world(), set, options);
  EXPECT_EQ(optimizer.parameter<float**>(first).data(),
            optimizer.parameter<float**>(second).data());
  EXPECT_EQ(optimizer.gradient<float*>(first).data(),
            optimizer.gradient<float*>(second).data());
  EXPECT_EQ(optimizer.segments(first).size(),
            optimizer.segments(second).size());
  EXPECT_NE(optimizer.describe().find("3 parameters, 103 elements"),
            std::string::npos);
  EXPECT_EQ(optimizer.memory().gradients,
            4 * optimizer.plan().buckets()[0].range.size());
  fill_gradient(optimizer, first, [](auto) { return 2.0; });
  // Marked under one name, it is not taken for unmarked under the other.
  optimizer.mark_ready(second);
  const StepReport report = optimizer.step();
  EXPECT_NEAR(report.gradient_norm(), 2.0 * std::sqrt(70.0), 1e-5);
  EXPECT_EQ(report.zero_count(), 33);
  EXPECT_EQ(read_parameter(optimizer, first)[69], -2.0);
  EXPECT_EQ(optimizer.update_count(second), 1);
  optimizer.mark_ready(first);
  optimizer.mark_ready(second);
  EXPECT_THROW(optimizer.mark_ready(first), InvalidArgument);
}

TEST(Marks, EmptyGroupsCanBeReadAndChanged) {
  ParameterSet set;
  const auto id = set.add("w", {9});
  OptimizerOptions options;
  options.groups["elsewhere"] = Sgd{.learning_rate = 0.25};
  ShardedOptimizer optimizer(world(), set, options);
  EXPECT_EQ(optimizer.group("elsewhere").get("learning_rate"), 0.25);
  optimizer.group("elsewhere").set("learning_rate", 0.5);
  fill_gradient(optimizer, id, [](auto) { return 1.0; });
  EXPECT_TRUE(optimizer.step().updated());
}

}  // namespace
}  // namespace kzero::test
