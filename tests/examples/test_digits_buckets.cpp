// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How gradients are cut into buckets changes no bit of the example's result.
#include <gtest/gtest.h>

#include <cstdint>

#include "examples/digits_support.hpp"

namespace {

class DigitsBuckets : public testing::TestWithParam<kzero::DType> {};

TEST_P(DigitsBuckets, SizeChangesNoBit) {
  digits_test::RunOptions options;
  options.network.hidden = {37, 20};
  options.network.dtype = GetParam();
  options.batch = 61;
  digits_test::TrainingRun one_bucket(options);
  one_bucket.steps(0, 30);
  const auto expected = one_bucket.parameter_bytes();
  ASSERT_EQ(one_bucket.optimizer().plan().buckets().size(), 1u);

  for (const std::int64_t bytes : {1, 1000, 4096}) {
    options.bucket_bytes = bytes;
    digits_test::TrainingRun run(options);
    run.steps(0, 30);
    EXPECT_GT(run.optimizer().plan().buckets().size(), 1u);
    EXPECT_TRUE(run.parameter_bytes() == expected) << bytes << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DigitsBuckets,
                         testing::Values(kzero::DType::float32,
                                         kzero::DType::bfloat16),
                         [](const auto& tested) {
                           return std::string(kzero::to_string(tested.param));
                         });

}  // namespace
