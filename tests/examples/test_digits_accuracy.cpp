// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A third of the example's default run learns to read the held-out digits.
#include <gtest/gtest.h>

#include "examples/digits_support.hpp"
#include "options.hpp"

namespace {

double accuracy_after_20_epochs(kzero::DType dtype) {
  digits_test::RunOptions options;
  options.network.dtype = dtype;
  options.seed = static_cast<std::uint64_t>(digits::Options().seed);
  options.weight_decay = digits::default_weight_decay;
  digits_test::TrainingRun run(options);
  run.steps(0, 20 * run.steps_per_epoch());
  return run.held_out_accuracy();
}

TEST(DigitsAccuracy, Float32) {
  EXPECT_GE(accuracy_after_20_epochs(kzero::DType::float32), 0.96);
}

TEST(DigitsAccuracy, Bfloat16) {
  EXPECT_GE(accuracy_after_20_epochs(kzero::DType::bfloat16), 0.95);
}

// From a scale with which the first gradients overflow.
TEST(DigitsAccuracy, Float16WithADynamicScaler) {
  kzero::DynamicScaler scaling;
  scaling.initial_scale = 16777216.0;
  digits_test::RunOptions options;
  options.network.dtype = kzero::DType::float16;
  options.scaler = kzero::Scaler::dynamic(scaling);
  options.seed = static_cast<std::uint64_t>(digits::Options().seed);
  options.weight_decay = digits::default_weight_decay;
  digits_test::TrainingRun run(options);
  run.step(0);
  EXPECT_EQ(run.skipped(), 1);
  run.steps(1, 20 * run.steps_per_epoch());
  EXPECT_LT(run.skipped(), 20);
  EXPECT_LT(run.optimizer().loss_scale(), scaling.initial_scale);
  EXPECT_GE(run.held_out_accuracy(), 0.95);
}

}  // namespace
