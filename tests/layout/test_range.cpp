// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/range.hpp>

namespace kzero {
namespace {

static_assert(Range{3, 8}.size() == 5);
static_assert(Range{}.empty() && Range{4, 4}.empty() && !Range{4, 5}.empty());

TEST(Range, CommonPart) {
  EXPECT_EQ(intersect({0, 10}, {4, 20}), (Range{4, 10}));
  EXPECT_EQ(intersect({4, 20}, {0, 10}), (Range{4, 10}));
  EXPECT_EQ(intersect({0, 10}, {3, 5}), (Range{3, 5}));
  EXPECT_EQ(intersect({2, 7}, {2, 7}), (Range{2, 7}));
}

TEST(Range, NoCommonPartIsEmpty) {
  for (const Range other : {Range{10, 20}, Range{15, 20}, Range{5, 5}}) {
    EXPECT_TRUE(intersect({0, 10}, other).empty());
    EXPECT_EQ(intersect({0, 10}, other).size(), 0);
    EXPECT_EQ(intersect(other, {0, 10}).size(), 0);
  }
}

TEST(Range, Shifted) {
  EXPECT_EQ(shift({3, 8}, 4), (Range{7, 12}));
  EXPECT_EQ(shift({3, 8}, -3), (Range{0, 5}));
  const std::int64_t far = std::int64_t{1} << 60;
  EXPECT_EQ(shift({0, 1}, far), (Range{far, far + 1}));
}

}  // namespace
}  // namespace kzero
