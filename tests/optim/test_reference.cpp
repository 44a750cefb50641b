// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The trajectories of optimizers.json (float64, from torch.optim 1.13.0 for
// the rules tested here), tiled so that shard borders cut parameters, over
// several buckets.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

using Json = nlohmann::json;

Rule rule_of(const Json& reference) {
  const Json& options = reference.at("options");
  const std::string name = reference.at("rule");
  if (name == "sgd") {
    Sgd rule;
    rule.learning_rate = options.at("lr");
    rule.momentum = options.value("momentum", 0.0);
    rule.dampening = options.value("dampening", 0.0);
    rule.weight_decay = options.value("weight_decay", 0.0);
    rule.nesterov = options.value("nesterov", false);
    rule.maximize = options.value("maximize", false);
    return rule;
  }
  AdamW rule;
  rule.learning_rate = options.at("lr");
  if (options.contains("betas")) {
    rule.beta1 = options["betas"][0];
    rule.beta2 = options["betas"][1];
  }
  rule.epsilon = options.value("eps", 1e-8);
  rule.weight_decay = options.value("weight_decay", 1e-2);
  rule.amsgrad = options.value("amsgrad", false);
  rule.maximize = options.value("maximize", false);
  return rule;
}

std::vector<Json> cases() {
  std::ifstream file(std::string(KZERO_TEST_DATA) + "/optimizers.json");
  const Json all = Json::parse(file);
  std::vector<Json> chosen;
  for (const Json& each : all.at("cases"))
    if (each.at("rule") == "sgd" || each.at("rule") == "adamw")
      chosen.push_back(each);
  return chosen;
}

void follow(const Json& reference, DType dtype) {
  SCOPED_TRACE(detail::concat(reference.at("rule").dump(),
                              reference.at("options").dump(), " in ", dtype));
  const auto communicator = world();
  const double ranks = communicator->size();
  ParameterSet model;
  for (std::int64_t copies : {5, 100, 1, 37, 200})
    model.add(detail::concat("p", copies), {copies, 7}, typed(dtype));
  OptimizerOptions options;
  options.rule = rule_of(reference);
  options.plan.bucket_bytes = 2000;
  ShardedOptimizer optimizer(communicator, model, options);
  ASSERT_GT(optimizer.plan().buckets().size(), 1u);

  const auto initial = reference.at("initial").get<std::vector<double>>();
  const auto value = [](const std::vector<double>& values) {
    return [&values](std::int64_t i) { return values[std::size_t(i % 7)]; };
  };
  for (std::int64_t p = 0; p < model.size(); ++p)
    write_parameter(optimizer, {p}, value(initial));

  // The ranks' parts differ; their mean is the reference's gradient.
  const double weight = 2.0 * (communicator->rank() + 1) / (ranks + 1.0);
  const bool wide = dtype == DType::float64;
  const double relative = wide ? 1e-12 : 1e-5, absolute = wide ? 1e-15 : 1e-7;
  const std::size_t steps = reference.at("gradients").size();
  for (std::size_t step = 0; step < steps; ++step) {
    const auto gradient =
        reference["gradients"][step].get<std::vector<double>>();
    for (std::int64_t p = 0; p < model.size(); ++p)
      fill_gradient(optimizer, {p}, [&](std::int64_t i) {
        return weight * gradient[std::size_t(i % 7)];
      });
    EXPECT_TRUE(optimizer.step().updated());
    const auto expected =
        reference["parameters"][step].get<std::vector<double>>();
    const auto got = read_all(optimizer);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i % 7],
                  absolute + relative * std::abs(expected[i % 7]))
          << "step " << step + 1 << ", element " << i;
  }
  EXPECT_EQ(optimizer.update_count({0}), std::int64_t(steps));
}

TEST(Reference, Float32FollowsTheTrajectories) {
  for (const Json& reference : cases()) follow(reference, DType::float32);
}

TEST(Reference, Float64FollowsTheTrajectories) {
  for (const Json& reference : cases()) follow(reference, DType::float64);
}

TEST(Reference, AllCasesAreThere) { EXPECT_EQ(cases().size(), 10u); }

}  // namespace
}  // namespace kzero::test
