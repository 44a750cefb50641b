// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/shard_table.hpp>
#include <limits>
#include <vector>

namespace kzero {
namespace {

TEST(ShardTable, OfNoRanksIsEmpty) {
  const ShardTable table;
  EXPECT_EQ(table.ranks(), 0);
  EXPECT_EQ(table.largest(), 0);
  EXPECT_EQ(table.total(), 0);
}

TEST(ShardTable, Uniform) {
  const ShardTable table = ShardTable::uniform(3, 128);
  EXPECT_EQ(table.ranks(), 3);
  EXPECT_EQ(table.total(), 384);
  EXPECT_EQ(table.range(0), (Range{0, 128}));
  EXPECT_EQ(table.range(2), (Range{256, 384}));
  EXPECT_EQ(table.size(1), 128);
  EXPECT_EQ(ShardTable::uniform(3, 0).total(), 0);
  EXPECT_EQ(table.largest(), 128);
}

TEST(ShardTable, CountsPast32Bits) {
  const int ranks = std::numeric_limits<int>::max();
  const std::int64_t size = std::int64_t{1} << 31;
  const ShardTable table = ShardTable::uniform(ranks, size);
  EXPECT_EQ(table.total(), ranks * size);
  EXPECT_EQ(table.range(ranks - 1), (Range{(ranks - 1) * size, ranks * size}));
}

TEST(ShardTable, UnequalAndEmptyShards) {
  const std::vector<std::int64_t> offsets = {0, 10, 10, 17};
  const ShardTable table{offsets};
  EXPECT_EQ(table.ranks(), 3);
  EXPECT_EQ(table.largest(), 10);
  EXPECT_EQ(table.total(), 17);
  EXPECT_EQ(table.range(0), (Range{0, 10}));
  EXPECT_TRUE(table.range(1).empty());
  EXPECT_EQ(table.range(2), (Range{10, 17}));
  EXPECT_EQ(table.size(2), 7);
}

}  // namespace
}  // namespace kzero
