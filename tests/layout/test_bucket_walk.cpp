// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/bucket_walk.hpp"

#include <gtest/gtest.h>

#include "layout/layout_testing.hpp"

namespace kzero::test {
namespace {

Lines parts_of(const Plan& plan, std::int64_t bucket, Range range) {
  Lines lines;
  detail::for_each_part(plan, bucket, range, [&](const auto& part) {
    lines.push_back(detail::concat('p', part.parameter.index, " bucket ",
                                   part.in_bucket, " parameter ",
                                   part.in_parameter));
  });
  return lines;
}

TEST(BucketWalk, FindsTheParametersOfARange) {
  // p3 at [0, 5), p2 at [64, 64), p1 at [64, 134), p0 at [192, 292).
  const Plan plan = plan_of({100, 70, 0, 5}, 2);
  EXPECT_EQ(parts_of(plan, 0, {0, 384}),
            (Lines{"p3 bucket [0, 5) parameter [0, 5)",
                   "p1 bucket [64, 134) parameter [0, 70)",
                   "p0 bucket [192, 292) parameter [0, 100)"}));
  EXPECT_EQ(parts_of(plan, 0, {100, 200}),
            (Lines{"p1 bucket [100, 134) parameter [36, 70)",
                   "p0 bucket [192, 200) parameter [0, 8)"}));
  EXPECT_EQ(parts_of(plan, 0, {200, 210}),
            (Lines{"p0 bucket [200, 210) parameter [8, 18)"}));
  EXPECT_EQ(parts_of(plan, 0, {5, 64}), Lines{});
  EXPECT_EQ(parts_of(plan, 0, {292, 384}), Lines{});
  EXPECT_EQ(parts_of(plan, 0, {70, 70}), Lines{});
}

TEST(BucketWalk, CountsFromTheBucketsBegin) {
  const Plan plan = plan_of({100, 70, 5}, 4, 240);
  EXPECT_EQ(parts_of(plan, 1, {10, 64}),
            (Lines{"p0 bucket [10, 64) parameter [10, 64)"}));
}

}  // namespace
}  // namespace kzero::test
