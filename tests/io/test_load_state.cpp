// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Damaged states, states of other models and wrong calls: each is refused on
// every rank, by name and value, and the optimizer does not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <kzero/kzero.hpp>
#include <limits>
#include <optional>
#include <vector>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_model.hpp"
#include "io/logged_words.hpp"
#include "io/optimizer_snapshot.hpp"
#include "support/optimizer_support.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

ParameterSet model(std::int64_t size = 6) {
  ParameterSet set;
  set.add("w", {size});
  set.add("half", {5}, typed(DType::bfloat16));
  return set;
}

OptimizerOptions with(const Rule& rule, const Scaler& scaler = Scaler::none) {
  OptimizerOptions options;
  options.rule = rule;
  options.reduction = Reduction::sum;
  options.scaler = scaler;
  options.plan.bucket_bytes = 8;
  return options;
}

class LoadState : public testing::Test {
 protected:
  LoadState() {
    write_start(optimizer, 1);
    train(optimizer, 2);
    good = optimizer.consolidate(last);
    before = snapshot(optimizer, MPI_COMM_WORLD);
  }

  /// The state is on the last rank alone.
  WrongCall load(const char* name, const std::optional<OptimizerState>& state,
                 std::vector<std::string> says,
                 const LoadOptions& options = {}) {
    says.push_back("load_state");
    return {name, [=, this] { optimizer.load_state(state, last, options); },
            std::move(says), Found::collective};
  }

  /// The good state, but for one change.
  WrongCall damaged(const char* name,
                    const std::function<void(OptimizerState&)>& change,
                    std::vector<std::string> says) {
    std::optional<OptimizerState> bad = good;
    if (bad) change(*bad);
    return load(name, bad, std::move(says));
  }

  WrongCall of(const char* name, const ParameterSet& set,
               const OptimizerOptions& options, std::vector<std::string> says) {
    ShardedOptimizer other(communicator, set, options);
    return load(name, other.consolidate(last), std::move(says));
  }

  void expect_all_refused(const WrongCalls& rows) {
    expect_refused(rows, [this] {
      EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
      // A mark of a wrong call is still there.
      EXPECT_TRUE(optimizer.step().updated());
      optimizer.load_state(good, last);
      EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
    });
  }

  const std::shared_ptr<Communicator> communicator = world();
  const int last = communicator->size() - 1;
  const bool is_last = communicator->rank() == last;
  ShardedOptimizer optimizer{communicator, model(), with(AdamW{})};
  std::optional<OptimizerState> good;
  Snapshot before;
};

StateArray& array(OptimizerState& state, const char* parameter,
                  std::size_t index) {
  return std::ranges::find(state.parameters, parameter, &ParameterState::name)
      ->arrays.at(index);
}

TEST_F(LoadState, RefusesDamage) {
  using State = OptimizerState;
  constexpr std::int64_t big = std::int64_t{1} << 62;
  expect_all_refused({
      damaged("an array that is too short",
              [](State& s) { array(s, "w", 1).bytes.pop_back(); },
              {"damaged", "\"exp_avg\"", "\"w\"", "23 bytes", "6 elements"}),
      damaged("an array that is too long",
              [](State& s) { array(s, "half", 0).bytes.resize(12); },
              {"damaged", "\"value\"", "\"half\"", "12 bytes", "(5)"}),
      damaged("an array of no bytes",
              [](State& s) { array(s, "half", 1).bytes.clear(); },
              {"damaged", "\"main\"", "\"half\"", "0 bytes", "(5)"}),
      damaged("another shape", [](State& s) { s.parameters[0].extents = {7}; },
              {"damaged", "\"w\"", "(7)"}),
      damaged("a negative extent",
              [](State& s) {
                s.parameters[0].extents = {-2, -3};
              },
              {"damaged", "\"w\"", "(-2, -3)"}),
      damaged("extents that overflow",
              [=](State& s) {
                s.parameters[0].extents = {big, 4, 6};
              },
              {"damaged", "\"w\"", "(4611686018427387904, 4, 6)"}),
      damaged("an unknown type",
              [](State& s) { array(s, "w", 2).dtype = DType(9); },
              {"damaged", "\"exp_avg_sq\"", "\"w\"", "unknown", "9"}),
      damaged("no value",
              [](State& s) {
                s.parameters[0].arrays.erase(s.parameters[0].arrays.begin());
              },
              {"damaged", "\"w\"", "no array \"value\""}),
      damaged("an array twice",
              [](State& s) { array(s, "w", 2).name = "exp_avg"; },
              {"damaged", "\"w\"", "\"exp_avg\" stands twice"}),
      damaged("a parameter twice",
              [](State& s) { s.parameters.push_back(s.parameters[0]); },
              {"damaged", "\"w\" stands twice"}),
      damaged("a group twice",
              [](State& s) { s.groups.push_back(s.groups[0]); },
              {"damaged", "\"default\" stands twice"}),
      damaged("negative steps", [](State& s) { s.steps = -3; },
              {"steps", "-3"}),
      damaged("skipped steps past all bounds",
              [](State& s) {
                s.skipped_total = std::numeric_limits<std::int64_t>::max();
              },
              {"skipped_total", "9223372036854775807"}),
      damaged("a negative update count",
              [](State& s) { s.parameters[0].update_count = -1; },
              {"\"w\"", "-1"}),
      damaged("a learning rate that is NaN",
              [](State& s) {
                s.groups[0].hyperparameters["learning_rate"] =
                    std::numeric_limits<double>::quiet_NaN();
              },
              {"\"default\"", "learning_rate", "nan"}),
      damaged("an unknown hyperparameter",
              [](State& s) { s.groups[0].hyperparameters["beta9"] = 1.0; },
              {"\"default\"", "\"beta9\""}),
      damaged("no groups", [](State& s) { s.groups.clear(); },
              {"groups missing in the state", "\"default\""}),
  });
}

TEST_F(LoadState, RefusesOtherModels) {
  ParameterSet more = model();
  more.add("more", {1});
  ParameterSet fewer;
  fewer.add("w", {6});
  ParameterSet other_type;
  other_type.add("w", {6}, typed(DType::float64));
  other_type.add("half", {5}, typed(DType::bfloat16));
  expect_all_refused({
      of("another shape", model(7), with(AdamW{}),
         {"the state does not fit", "\"w\"", "(7)", "(6)"}),
      of("another type", other_type, with(AdamW{}),
         {"\"w\"", "float64", "float32", "Match::partial"}),
      of("a parameter more", more, with(AdamW{}), {"\"more\""}),
      of("a parameter less", fewer, with(AdamW{}),
         {"missing in the state", "\"half\""}),
      of("another rule", model(), with(Lion{}),
         {"\"default\"", "\"lion\"", "\"adamw\"", "OtherRule::start_anew"}),
  });
}

TEST_F(LoadState, RefusesWrongCalls) {
  const int ranks = communicator->size();
  const auto root_is = [&](const char* name, int root) {
    return WrongCall{name,
                     [=, this] { optimizer.load_state(good, root); },
                     {"load_state", detail::concat("root is ", root),
                      detail::concat("0 to ", ranks - 1)},
                     Found::collective};
  };
  const auto gather_to = [&](const char* name, int root) {
    return WrongCall{
        name,
        [=, this] { static_cast<void>(optimizer.consolidate(root)); },
        {"consolidate", detail::concat("root is ", root),
         detail::concat("0 to ", ranks - 1)},
        Found::collective};
  };
  WrongCalls rows = {
      root_is("a root below 0", -1),
      root_is("a root past the ranks", ranks),
      gather_to("gathered below 0", -1),
      gather_to("gathered past the ranks", ranks),
      load("no state", std::nullopt,
           {"no state", detail::concat("rank ", last)}),
      load("an unknown match", good, {"LoadOptions::match", "7"},
           {.match = Match(7)}),
      load("an unknown answer to another rule", good,
           {"LoadOptions::other_rule", "8"}, {.other_rule = OtherRule(8)}),
      load("an unknown answer to another type", good,
           {"LoadOptions::other_type", "9"}, {.other_type = OtherType(9)}),
  };
  if (ranks > 1) {
    rows.push_back({"another root on the last rank",
                    [=, this] { optimizer.load_state(good, is_last ? 1 : 0); },
                    {"load_state", "ranks disagree", "root = 1"},
                    Found::collective});
    rows.push_back({"gathered to another root on the last rank",
                    [=, this] {
                      static_cast<void>(optimizer.consolidate(is_last ? 1 : 0));
                    },
                    {"consolidate", "ranks disagree", "root = 1"},
                    Found::collective});
    rows.push_back({"another root that is no rank on the last rank",
                    [=, this] {
                      static_cast<void>(
                          optimizer.consolidate(is_last ? ranks : 0));
                    },
                    {"consolidate", detail::concat("root is ", ranks)},
                    Found::collective});
  }
  rows.push_back({"after a mark on the last rank",
                  [=, this] {
                    if (is_last) optimizer.mark_ready({0});
                    optimizer.load_state(good, last);
                  },
                  {"load_state", "1 of 2"},
                  Found::collective});
  rows.push_back({"gathered after a mark on the last rank",
                  [=, this] {
                    if (is_last) optimizer.mark_ready({0});
                    static_cast<void>(optimizer.consolidate(0));
                  },
                  {"consolidate", "1 of 2"},
                  Found::collective});
  expect_all_refused(rows);
}

TEST_F(LoadState, RefusesAnOptimizerThatWasMoved) {
  const ShardedOptimizer moved = std::move(optimizer);
  expect_refused({
      {"gathering",
       [&] { static_cast<void>(optimizer.consolidate(0)); },
       {"moved from"}},
      {"loading", [&] { optimizer.load_state(good, last); }, {"moved from"}},
  });
}

// Only root's argument counts.
TEST_F(LoadState, TakesTheStateOfRootAlone) {
  OptimizerState state;  // damaged on the others
  state.steps = -7;
  if (good) state = *good;
  train(optimizer, 1);
  ASSERT_FALSE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
  optimizer.load_state(state, last,
                       {.match = is_last ? Match::strict : Match::partial});
  EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
}

TEST_F(LoadState, TakesArraysInAnyOrder) {
  if (good)
    for (ParameterState& parameter : good->parameters)
      std::ranges::reverse(parameter.arrays);
  if (good) std::ranges::reverse(good->parameters);
  train(optimizer, 1);
  optimizer.load_state(good, last);
  EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
}

TEST_F(LoadState, ForgetsTheAveragedGradient) {
  optimizer.step();
  EXPECT_NO_THROW(optimizer.averaged_gradient<float>({0}));
  optimizer.load_state(good, last);
  EXPECT_THROW(optimizer.averaged_gradient<float>({0}), InvalidArgument);
}

TEST_F(LoadState, StartsAnewUnderAnotherRule) {
  ShardedOptimizer other(communicator, model(), with(Lion{}));
  other.load_state(good, last, {.other_rule = OtherRule::start_anew});
  const Snapshot after = snapshot(other, MPI_COMM_WORLD);
  for (const char* key : {"w|value", "half|value", "half|main", "steps"})
    EXPECT_EQ(after.at(key), before.at(key)) << key;
  EXPECT_EQ(after.at("w|exp_avg"), std::string(24, '\0'));
  EXPECT_EQ(other.update_count({0}), 0);
}

// The state of another scaler is loaded with a warning, which root logs.
TEST_F(LoadState, WarnsOnRoot) {
  const LoggedWords words;
  ShardedOptimizer other(communicator, model(),
                         with(AdamW{}, Scaler::constant(8.0)));
  other.load_state(good, last);
  EXPECT_EQ(other.loss_scale(), 8.0);
  EXPECT_EQ(words.warnings().size(), is_last ? 1u : 0u);
  if (is_last) {
    EXPECT_TRUE(says(words.warnings().front(), {"load_state: ", "scaler"}));
  }
}

}  // namespace
}  // namespace kzero::test
