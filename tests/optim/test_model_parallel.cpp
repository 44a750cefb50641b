// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Global quantities of a model that is spread over a model-parallel group,
// against the whole model computed in float64 by one loop. Model-parallel
// groups of two ranks, as many as the world has room for.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "support/grid.hpp"
#include "support/optimizer_support.hpp"
#include "support/padding.hpp"

namespace kzero::test {
namespace {

constexpr int width = 2;

// One parameter of the whole model, and what of it this rank holds.
struct Part {
  std::string name;
  std::int64_t size = 0;   // on this rank
  std::int64_t begin = 0;  // of this rank's elements in the whole
  ParameterOptions options;
  bool held = true;
  std::int64_t whole = 0;  // elements that count, over the whole model
};

ParameterOptions with(ModelParallel kind, DType dtype = DType::float32,
                      int chunk = 0, std::string group = "default") {
  ParameterOptions options = typed(dtype);
  options.model_parallel = kind;
  options.chunk = chunk;
  options.group = std::move(group);
  return options;
}

// The same list on every rank; only what is held is declared.
std::vector<Part> whole_model(int column) {
  using enum ModelParallel;
  std::vector<Part> parts;
  parts.push_back({"weight", 113, 113 * column, with(split), true, 226});
  parts.push_back({"bias", 37, 0, with(replicated), true, 37});
  parts.push_back(
      {"norm", 12, 0, with(replicated, DType::float64, 1, "late"), true, 12});
  parts.push_back({"wide", 3000, 3000 * column, with(split, DType::bfloat16, 1),
                   true, 6000});
  parts.push_back({"first only", 71, 0, with(split), column == 0, 71});
  parts.push_back({"last only", 5, 0, with(replicated), column == 1, 5});
  parts.push_back({"embedding", 400, 0, with(replicated), column == 0, 400});
  ParameterOptions copy = with(replicated);
  copy.tied_to = "embedding";
  parts.push_back({"head", 400, 0, copy, column == 1, 0});
  parts.push_back({"encoder", 50, 0, with(replicated), true, 50});
  ParameterOptions alias = with(replicated);
  alias.tied_to = "encoder";
  parts.push_back({"decoder", 50, 0, alias, true, 0});
  ParameterOptions frozen = with(replicated);
  frozen.frozen = true;
  parts.push_back({"table", 90, 0, frozen, true, 0});
  return parts;
}

// Multiples of 1/8 so that bfloat16 holds them; every seventh is 0 everywhere.
double gradient_of(const std::string& whole, std::int64_t i, int row) {
  if (i % 7 == 3) return 0.0;
  const auto seed = std::int64_t(std::hash<std::string>{}(whole) % 97);
  return double((i * 37 + seed) % 61 - 30) / 8.0 + row;
}

std::string whole_name(const Part& part) {
  return part.options.tied_to.empty() ? part.name : part.options.tied_to;
}

struct Model {
  std::vector<Part> parts;
  ParameterSet set;
  std::map<std::string, ParameterId> ids;

  explicit Model(int column) : parts(whole_model(column)) {
    for (const Part& part : parts)
      if (part.held)
        ids[part.name] = set.add(part.name, {part.size}, part.options);
  }

  void fill_gradients(ShardedOptimizer& optimizer, int row) const {
    for (const Part& part : parts) {
      if (!part.held || part.options.frozen) continue;
      fill_gradient(optimizer, ids.at(part.name), [&](std::int64_t i) {
        return gradient_of(whole_name(part), part.begin + i, row);
      });
    }
  }
};

struct Expected {
  double norm = 0.0;
  std::int64_t zeros = 0;
};

Expected expected_of(const std::vector<Part>& parts, int rows) {
  Expected expected;
  double squares = 0.0;
  for (const Part& part : parts) {
    for (std::int64_t i = 0; i < part.whole; ++i) {
      double mean = 0.0;
      for (int row = 0; row < rows; ++row)
        mean += gradient_of(part.name, i, row);
      mean /= rows;
      squares += mean * mean;
      expected.zeros += mean == 0.0 ? 1 : 0;
    }
  }
  expected.norm = std::sqrt(squares);
  return expected;
}

OptimizerOptions small_buckets(const Grid& grid) {
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  options.plan.bucket_bytes = 1000;
  options.model_parallel = grid.model;
  return options;
}

TEST(ModelParallel, NormAndZerosCountEachElementOnce) {
  const Grid grid(width);
  const Model model(grid.model->rank());
  ShardedOptimizer optimizer(grid.data, model.set, small_buckets(grid));
  model.fill_gradients(optimizer, grid.data->rank());
  poison_padding(optimizer);
  const StepReport report = optimizer.step();
  const Expected expected = expected_of(model.parts, grid.data->size());
  EXPECT_NEAR(report.gradient_norm(), expected.norm, 1e-12 * expected.norm);
  EXPECT_EQ(report.zero_count(), expected.zeros);
  EXPECT_EQ(report.nonfinite(), 0);
  EXPECT_TRUE(report.updated());
}

TEST(ModelParallel, ClipsByTheNormOfTheWholeModel) {
  const Grid grid(width);
  const Model model(grid.model->rank());
  OptimizerOptions options = small_buckets(grid);
  options.clip_norm = 2.0;
  ShardedOptimizer optimizer(grid.data, model.set, options);
  model.fill_gradients(optimizer, grid.data->rank());
  poison_padding(optimizer);
  optimizer.step();
  const int rows = grid.data->size();
  const double factor = 2.0 / (expected_of(model.parts, rows).norm + 1e-6);
  for (const Part& part : model.parts) {
    if (!part.held) continue;
    const auto got = read_parameter(optimizer, model.ids.at(part.name));
    for (std::int64_t i = 0; i < part.size; ++i) {
      double mean = 0.0;
      for (int row = 0; row < rows && !part.options.frozen; ++row)
        mean += gradient_of(whole_name(part), part.begin + i, row) / rows;
      const double tolerance =
          part.options.dtype == DType::bfloat16 ? 4e-3 : 1e-6;
      EXPECT_NEAR(got[std::size_t(i)], -factor * mean,
                  tolerance * std::abs(factor * mean) + 1e-12)
          << part.name << ' ' << i;
    }
  }
}

TEST(ModelParallel, SplitThreeAndFourWithAReplicatedTwelveIsThirteen) {
  const Grid grid(width);
  ParameterSet set;
  const auto split = set.add("split", {1}, with(ModelParallel::split));
  const auto bias = set.add("bias", {1}, with(ModelParallel::replicated));
  ShardedOptimizer optimizer(grid.data, set, small_buckets(grid));
  fill_gradient(optimizer, split,
                [&](auto) { return 3.0 + grid.model->rank(); });
  fill_gradient(optimizer, bias, [](auto) { return 12.0; });
  EXPECT_NEAR(optimizer.step().gradient_norm(), 13.0, 1e-12);
}

TEST(ModelParallel, TiedCopiesCountOnceInBothWays) {
  const Grid grid(width);
  const bool first = grid.model->rank() == 0;
  ParameterSet set;
  ParameterOptions options;
  if (!first) options.tied_to = "embedding";
  const auto id = set.add(first ? "embedding" : "head", {400}, options);
  ParameterOptions alias;
  alias.tied_to = "embedding";
  if (first) set.add("output", {400}, alias);
  ShardedOptimizer optimizer(grid.data, set, small_buckets(grid));
  fill_gradient(optimizer, id, [](auto) { return std::sqrt(2.0); });
  const StepReport report = optimizer.step();
  EXPECT_NEAR(report.gradient_norm(), 28.284271247, 1e-5);
  EXPECT_EQ(report.zero_count(), 0);
  // Each copy has moved.
  EXPECT_NEAR(read_parameter(optimizer, id)[399], -std::sqrt(2.0), 1e-6);
}

TEST(ModelParallel, AnOverflowAnywhereSkipsEverywhereAndNamesItsPlace) {
  const Grid grid(width);
  const Model model(grid.model->rank());
  OptimizerOptions options = small_buckets(grid);
  options.nonfinite = Nonfinite::skip;
  ShardedOptimizer optimizer(grid.data, model.set, options);
  const int row = grid.data->size() - 1;
  model.fill_gradients(optimizer, grid.data->rank());
  // In a copy that does not count: the step is skipped all the same.
  const bool culprit = grid.data->rank() == row && grid.model->rank() == 1;
  if (culprit)
    fill_gradient(optimizer, model.ids.at("head"), [](std::int64_t i) {
      return i == 17 ? std::numeric_limits<double>::infinity() : 1.0;
    });
  const auto before = read_all(optimizer);
  const StepReport report = optimizer.step();
  EXPECT_FALSE(report.updated());
  EXPECT_EQ(read_all(optimizer), before);
  ASSERT_TRUE(report.nonfinite_source().has_value());
  EXPECT_EQ(report.nonfinite_source()->rank, row);
  EXPECT_EQ(report.nonfinite_source()->model_parallel_rank, 1);
  if (grid.model->rank() == 1) {
    EXPECT_EQ(report.nonfinite_source()->parameter, model.ids.at("head"));
  }
  model.fill_gradients(optimizer, grid.data->rank());
  EXPECT_TRUE(optimizer.step().updated());
}

// Copies of a split parameter take the same step as what they are copies of.
// Pairs of tensor-parallel ranks on two pipeline stages.
TEST(ModelParallel, CopiesOfASplitParameterStayEqual) {
  const Grid grid(world()->size() % 4 == 0 ? 4 : 1);
  if (grid.model->size() == 1) return;  // no room for two stages
  const int stage = grid.model->rank() / 2, column = grid.model->rank() % 2;
  ParameterSet set;
  ParameterOptions options = with(ModelParallel::split);
  if (stage == 1) options.tied_to = "embedding";
  const auto id = set.add(stage == 0 ? "embedding" : "head", {100}, options);
  OptimizerOptions settings = small_buckets(grid);
  settings.rule = Lamb{.learning_rate = 0.1, .weight_decay = 0.1};
  ShardedOptimizer optimizer(grid.data, set, settings);
  write_parameter(optimizer, id, [&](auto) { return 1.0 + 9.0 * column; });
  fill_gradient(optimizer, id, [&](auto) { return 1.0 + column; });
  const StepReport report = optimizer.step();
  EXPECT_NEAR(report.gradient_norm(), std::sqrt(500.0), 1e-5);
  double value = read_parameter(optimizer, id)[7];
  std::vector<double> all(4);
  grid.model->all_gather(&value, sizeof value, all.data(), {"test"});
  EXPECT_EQ(all[0], all[2]);
  EXPECT_EQ(all[1], all[3]);
  EXPECT_NE(all[0], all[1]);
}

// One rank of the model with a gradient is enough.
TEST(ModelParallel, WhatSeveralRanksHoldIsKeptOnAllOrNone) {
  const Grid grid(width);
  const int column = grid.model->rank();
  ParameterSet set;
  ParameterOptions split = with(ModelParallel::split);
  ParameterOptions replicated = with(ModelParallel::replicated);
  split.unmarked = replicated.unmarked = Unmarked::keep;
  // Other parameters before them: places differ between the ranks.
  if (column == 1) set.add("own", {3}, split);
  const auto a = set.add("a", {20}, split);
  const auto b = set.add("b", {20}, replicated);
  const auto c = set.add("c", {20}, split);
  const auto always = set.add("always", {5}, with(ModelParallel::replicated));
  ShardedOptimizer optimizer(grid.data, set, small_buckets(grid));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_gradients();
    optimizer.mark_ready(always);
    const bool here = column == step && grid.data->rank() == 0;
    if (here) optimizer.mark_ready(a);
    if (here) optimizer.mark_ready(b);
    optimizer.step();
    EXPECT_EQ(optimizer.update_count(a), step + 1);
    EXPECT_EQ(optimizer.update_count(b), step + 1);
    EXPECT_EQ(optimizer.update_count(c), 0);
  }
}

// A split parameter has one trust ratio: that of the whole.
TEST(ModelParallel, TrustRatiosAreThoseOfTheWholeParameter) {
  const Grid grid(width);
  const int column = grid.model->rank();
  const int rows = grid.data->size();
  constexpr std::int64_t each = 2500;
  ParameterSet set;
  // Ranks differ in what else they have.
  if (column == 0) set.add("other", {33}, with(ModelParallel::replicated));
  const auto id =
      set.add("w", {each}, with(ModelParallel::split, DType::float64));
  OptimizerOptions options = small_buckets(grid);
  const Lamb lamb{.learning_rate = 0.01, .weight_decay = 0.1};
  options.rule = lamb;
  ShardedOptimizer optimizer(grid.data, set, options);
  const auto start = [](std::int64_t i) { return 1.0 + double(i % 11) / 8; };
  write_parameter(optimizer, id,
                  [&](std::int64_t i) { return start(column * each + i); });
  std::vector<double> p, m(2 * each, 0.0), v(2 * each, 0.0), u(2 * each);
  for (std::int64_t i = 0; i < 2 * each; ++i) p.push_back(start(i));
  for (int step = 1; step <= 3; ++step) {
    fill_gradient(optimizer, id, [&](std::int64_t i) {
      return step * gradient_of("w", column * each + i, grid.data->rank());
    });
    poison_padding(optimizer);
    optimizer.step();
    double pp = 0.0, uu = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      double g = 0.0;
      for (int row = 0; row < rows; ++row)
        g += step * gradient_of("w", std::int64_t(i), row) / rows;
      m[i] += (1 - lamb.beta1) * (g - m[i]);
      v[i] = lamb.beta2 * v[i] + (1 - lamb.beta2) * g * g;
      const double mhat = m[i] / (1 - std::pow(lamb.beta1, step));
      const double vhat = v[i] / (1 - std::pow(lamb.beta2, step));
      u[i] = mhat / (std::sqrt(vhat) + lamb.epsilon) + lamb.weight_decay * p[i];
      pp += p[i] * p[i];
      uu += u[i] * u[i];
    }
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] -= lamb.learning_rate * std::sqrt(pp / uu) * u[i];
  }
  const auto got = read_parameter(optimizer, id);
  for (std::int64_t i = 0; i < each; ++i)
    ASSERT_NEAR(got[std::size_t(i)], p[std::size_t(column * each + i)], 1e-12);
}

TEST(ModelParallel, OneRankWithAnotherRateStopsAllAndTheStepIsMadeAgain) {
  const Grid grid(width);
  const Model model(grid.model->rank());
  if (grid.data->size() == 1) return;  // nobody to differ from
  OptimizerOptions options = small_buckets(grid);
  ShardedOptimizer optimizer(grid.data, model.set, options);
  const auto before = read_all(optimizer);
  model.fill_gradients(optimizer, grid.data->rank());
  const bool odd = grid.data->rank() == 1 && grid.model->rank() == 0;
  if (odd) optimizer.group("default").set("learning_rate", 0.5);
  const auto message = message_of<InvalidArgument>([&] { optimizer.step(); });
  for (const char* fragment :
       {"rank 0 has learning_rate of group \"default\" = 1,",
        "rank 1 has learning_rate of group \"default\" = 0.5"})
    EXPECT_NE(message.find(fragment), std::string::npos) << message;
  EXPECT_EQ(read_all(optimizer), before);
  if (odd) optimizer.group("default").set("learning_rate", 1.0);
  model.fill_gradients(optimizer, grid.data->rank());
  EXPECT_TRUE(optimizer.step().updated());
}

TEST(ModelParallel, RanksOfOneDataParallelGroupAreNoModel) {
  const auto data = world();
  ParameterSet set;
  set.add("w", {100});
  OptimizerOptions options;
  options.model_parallel = world();
  const std::string message = message_of<InvalidArgument>(
      [&] { ShardedOptimizer(data, set, options); });
  EXPECT_NE(message.find("model"), std::string::npos) << message;
}

// A tie in one rank's set and a tie to another rank's parameter are one thing.
TEST(ModelParallel, ATieMayBeLocalOnOneRankOnly) {
  const Grid grid(width);
  ParameterSet set;
  if (grid.model->rank() == 1) set.add("e", {100});
  ParameterOptions tied;
  tied.tied_to = "e";
  const auto head = set.add("h", {100}, tied);
  ShardedOptimizer optimizer(grid.data, set, small_buckets(grid));
  fill_gradient(optimizer, head, [](auto) { return 1.0; });
  EXPECT_NEAR(optimizer.step().gradient_norm(), 10.0, 1e-6);
}

// What does not go together is refused on every rank of the model.
void expect_refused(
    const Grid& grid,
    const std::function<void(ParameterSet&, OptimizerOptions&)>& differ,
    std::string_view fragment) {
  ParameterSet set;
  OptimizerOptions options = small_buckets(grid);
  differ(set, options);
  const std::string message = message_of<InvalidArgument>(
      [&] { ShardedOptimizer(grid.data, set, options); });
  EXPECT_NE(message.find(fragment), std::string::npos) << message;
}

TEST(ModelParallel, RefusesWhatDoesNotGoTogether) {
  const Grid grid(width);
  const int column = grid.model->rank();
  using enum ModelParallel;
  expect_refused(
      grid,
      [&](auto& set, auto&) { set.add("w", {3 + column}, with(replicated)); },
      "\"w\" is replicated, but float32(3)");
  expect_refused(
      grid,
      [&](auto& set, auto&) {
        set.add("w", {3}, with(column == 0 ? replicated : split));
      },
      "\"w\" is replicated on model-parallel rank 0 and split on rank 1");
  expect_refused(
      grid,
      [&](auto& set, auto&) {
        ParameterOptions tied;
        tied.tied_to = "nobody";
        if (column == 1) set.add("w", {3}, tied);
      },
      "\"nobody\"");
  expect_refused(
      grid,
      [&](auto& set, auto&) {
        ParameterOptions tied;
        tied.tied_to = column == 0 ? "b" : "a";
        set.add(column == 0 ? "a" : "b", {3}, tied);
      },
      "itself");
  expect_refused(
      grid,
      [&](auto& set, auto&) {
        ParameterOptions tied;
        if (column == 1) tied.tied_to = "a";
        set.add(column == 0 ? "a" : "b", {3 + column}, tied);
      },
      "float32(4)");
  expect_refused(
      grid,
      [&](auto& set, auto& options) {
        set.add("w", {3});
        options.clip_norm = 1.0 + column;
      },
      "clip_norm");
  expect_refused(
      grid,
      [&](auto& set, auto&) {
        ParameterOptions frozen;
        frozen.frozen = column == 0;
        set.add("w", {3}, frozen);
      },
      "\"w\" is frozen on model-parallel rank 0");
  expect_refused(
      grid,
      [&](auto& set, auto& options) {
        set.add("w", {3}, with(split));
        if (column == 1) options.rule = Lamb();
      },
      "\"w\" is split, sgd(");
  expect_refused(
      grid,
      [&](auto& set, auto&) {
        ParameterOptions tied;
        if (column == 1) set.add("y", {3});
        if (column == 1) tied.tied_to = "y";
        set.add("x", {3}, tied);
      },
      "\"x\" is replicated on model-parallel rank 0 and tied to another");
  // A problem of one rank of the whole grid.
  expect_refused(
      grid,
      [&](auto& set, auto& options) {
        set.add("w", {3});
        if (column == 1 && grid.data->rank() == grid.data->size() - 1)
          options.clip_norm = -1.0;
      },
      "clip_norm is -1");
}

}  // namespace
}  // namespace kzero::test
