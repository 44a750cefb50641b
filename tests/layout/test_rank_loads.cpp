// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/rank_loads.hpp"

#include <gtest/gtest.h>

#include <array>

namespace kzero::test {
namespace {

using detail::largest_first;
using detail::RankLoads;

TEST(RankLoads, GiveToTheRankThatHasTheLeastAndTheLowerOfTwo) {
  RankLoads loads(std::array<std::int64_t, 3>{4, 0, 4});
  EXPECT_EQ(loads.largest(), 4);
  EXPECT_EQ(loads.give(4), 1);
  EXPECT_EQ(loads.give(1), 0);
  EXPECT_EQ(loads.give(0), 1);
  EXPECT_EQ(loads.give(7), 1);
  EXPECT_EQ(loads.give(2), 2);
  EXPECT_EQ(loads.largest(), 11);
}

TEST(RankLoads, OfOneRankTakeAll) {
  RankLoads loads(std::array<std::int64_t, 1>{0});
  EXPECT_EQ(loads.give(3), 0);
  EXPECT_EQ(loads.give(4), 0);
  EXPECT_EQ(loads.largest(), 7);
}

TEST(LargestFirst, LeavesEqualOnesInOrder) {
  const std::array<std::int64_t, 6> sizes = {2, 7, 0, 7, 2, 9};
  EXPECT_EQ(largest_first(sizes), (std::vector<std::size_t>{5, 1, 3, 0, 4, 2}));
  EXPECT_TRUE(largest_first({}).empty());
}

}  // namespace
}  // namespace kzero::test
