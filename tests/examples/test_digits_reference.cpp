// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The example's distributed training against the serial oracle. Weights and
// batches are the example's data; network and optimizer are the oracle's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "examples/digits_support.hpp"
#include "examples/serial_training.hpp"
#include "initial_values.hpp"

namespace {

using digits::Activation;

struct Case {
  std::string name;
  std::vector<int> hidden;
  Activation activation;
  std::int64_t batch;
  std::optional<double> clip;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

digits_test::RunOptions run_options(const Case& c) {
  digits_test::RunOptions options;
  options.network.hidden = c.hidden;
  options.network.activation = c.activation;
  options.batch = c.batch;
  options.clip = c.clip;
  options.weight_decay = 0.1;
  return options;
}

serial::Training make_oracle(const Case& c) {
  const digits_test::RunOptions options = run_options(c);
  const bool relu = c.activation == Activation::relu;
  serial::Training oracle({relu ? serial::Kind::relu : serial::Kind::tanh,
                           digits_test::learning_rate, c.clip.value_or(0.0)});
  std::vector<int> widths = c.hidden;
  widths.push_back(10);
  int inputs = 64;
  for (std::size_t l = 0; l < widths.size(); ++l) {
    const bool last = l + 1 == widths.size();
    const double gain = relu && !last ? std::sqrt(2.0) : 1.0;
    const std::vector<float> weights = digits::initial_weights(
        options.seed, static_cast<int>(l), widths[l], inputs, gain);
    oracle.add_layer(
        static_cast<std::size_t>(inputs), static_cast<std::size_t>(widths[l]),
        serial::Vector(weights.begin(), weights.end()), options.weight_decay);
    inputs = widths[l];
  }
  return oracle;
}

class DigitsReference : public testing::TestWithParam<Case> {};

TEST_P(DigitsReference, LossFollowsTheSerialOracle) {
  digits_test::TrainingRun run(run_options(GetParam()));
  serial::Training oracle = make_oracle(GetParam());

  double first_ten = 0.0;
  double last_ten = 0.0;
  for (std::int64_t step = 0; step < 50; ++step) {
    const double expected =
        oracle.step(run.data().images, run.data().labels, run.batch(step));
    const double loss = run.step(step);
    ASSERT_NEAR(loss, expected, 1e-4) << "step " << step;
    if (step < 10) first_ten += loss;
    if (step >= 40) last_ten += loss;
  }
  // Two runs that stand still would agree as well.
  EXPECT_LT(last_ten, 0.95 * first_ten);
}

// 61 does not divide by 2, 3 or 4, and the 24th batch of an epoch is smaller;
// of 3 images the last of 4 ranks, or another, has none.
INSTANTIATE_TEST_SUITE_P(
    UnevenBatches, DigitsReference,
    testing::Values(
        Case{"Batch61Tanh", {32}, Activation::tanh, 61, std::nullopt},
        Case{"Batch61ReluTwoLayers", {24, 16}, Activation::relu, 61, 0.5},
        Case{"Batch3TanhClipped", {16}, Activation::tanh, 3, 1.0}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
