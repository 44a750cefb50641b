// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Rules: hyperparameters by name, checks, state, prepared steps.
#include <gtest/gtest.h>

#include <cmath>
#include <kzero/error.hpp>
#include <kzero/rule.hpp>
#include <limits>

#include "kernels/prepared_step.hpp"

namespace kzero {
namespace {

using Names = std::vector<std::string_view>;

TEST(Rule, NamesTheMembersInOrder) {
  EXPECT_EQ(Rule(AdamW{}).name(), "adamw");
  EXPECT_EQ(Rule(AdamW{}).hyperparameters(),
            (Names{"learning_rate", "beta1", "beta2", "epsilon", "weight_decay",
                   "amsgrad", "maximize"}));
  EXPECT_EQ(Rule(Sgd{}).name(), "sgd");
  EXPECT_EQ(Rule(Sgd{}).hyperparameters(),
            (Names{"learning_rate", "momentum", "dampening", "weight_decay",
                   "nesterov", "maximize"}));
}

TEST(Rule, StateFollowsTheOptions) {
  EXPECT_EQ(Rule(AdamW{}).state_names(), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(Rule(AdamW{.amsgrad = true}).state_names(),
            (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));
  EXPECT_EQ(Rule(Sgd{}).state_names(), Names{});
  EXPECT_EQ(Rule(Sgd{.momentum = 0.9}).state_names(), Names{"momentum_buffer"});
}

TEST(Rule, HyperparametersAreReadAndWrittenByName) {
  Rule rule = AdamW{.learning_rate = 0.5, .maximize = true};
  EXPECT_EQ(rule.get("learning_rate"), 0.5);
  EXPECT_EQ(rule.get("maximize"), 1.0);
  rule.set("learning_rate", 0.25);
  rule.set("maximize", 0.0);
  EXPECT_EQ(rule.get("learning_rate"), 0.25);
  EXPECT_FALSE(std::get<AdamW>(rule.value()).maximize);
}

TEST(Rule, RefusesWrongValuesAndKeepsTheOld) {
  Rule rule = AdamW{};
  EXPECT_THROW(rule.set("learning_rate", -1.0), InvalidArgument);
  EXPECT_THROW(rule.set("beta1", 1.0), InvalidArgument);
  EXPECT_THROW(rule.set("amsgrad", 1.0), InvalidArgument);
  EXPECT_THROW(rule.set("maximize", 0.5), InvalidArgument);
  EXPECT_THROW(rule.set("momentum", 0.5), InvalidArgument);
  EXPECT_THROW(static_cast<void>(rule.get("momentum")), InvalidArgument);
  EXPECT_EQ(rule.get("learning_rate"), 1e-3);
  Rule sgd = Sgd{.momentum = 0.9};
  EXPECT_THROW(sgd.set("momentum", 0.0), InvalidArgument);
  sgd.set("momentum", 0.8);
}

TEST(Rule, RefusesWrongStructs) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(Rule(AdamW{.learning_rate = nan}), InvalidArgument);
  EXPECT_THROW(Rule(AdamW{.beta2 = -0.1}), InvalidArgument);
  EXPECT_THROW(Rule(AdamW{.epsilon = -1e-8}), InvalidArgument);
  EXPECT_THROW(Rule(AdamW{.weight_decay = -1.0}), InvalidArgument);
  EXPECT_THROW(Rule(Sgd{.momentum = -0.1}), InvalidArgument);
  EXPECT_THROW(Rule(Sgd{.nesterov = true}), InvalidArgument);
  EXPECT_THROW(Rule(Sgd{.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
               InvalidArgument);
}

// Golden value: t = 1, g = eps = 1e-8, lr = 1e-3, no decay: a step of 5.0e-4.
TEST(PreparedStep, EpsilonStandsOutsideTheRootAfterCorrection) {
  const Rule rule = AdamW{.weight_decay = 0.0};
  const auto prepared = detail::prepare_step(rule, 1, DType::float64);
  double gradient = 1e-8, main = 1.0, m = 0.0, v = 0.0;
  detail::UpdateTile tile;
  tile.step = prepared.step;
  tile.gradient = &gradient;
  tile.main = &main;
  tile.state[0] = &m;
  tile.state[1] = &v;
  tile.count = 1;
  (*prepared.update)[std::size_t(DType::float64)](tile);
  EXPECT_NEAR(1.0 - main, 5.0e-4, 1e-12);
}

TEST(PreparedStep, SignIsTurnedForMaximize) {
  EXPECT_EQ(detail::prepare_step(Sgd{}, 1, DType::float32).sign, 1.0);
  EXPECT_EQ(detail::prepare_step(Sgd{.maximize = true}, 1, DType::float32).sign,
            -1.0);
}

}  // namespace
}  // namespace kzero
