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

}  // namespace
