// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <vector>

#include "comm/pieces.hpp"

namespace kzero::detail {
namespace {

ReduceArguments arguments(ShardTable shards, std::int64_t piece_bytes,
                          std::int64_t granularity) {
  ReduceArguments result;
  result.shards = shards;
  result.piece_bytes = piece_bytes;
  result.piece_granularity = granularity;
  return result;
}

TEST(Pieces, HoldWhatThePeersSend) {
  // 3 peers, 4 bytes an element: 1000 / 12 = 83 elements, to 64.
  const Pieces pieces =
      cut_pieces(arguments(ShardTable::uniform(4, 200), 1000, 64));
  EXPECT_EQ(pieces.length, 64);
  EXPECT_EQ(pieces.count, 4);
  EXPECT_EQ(pieces.of(3, 200), (Range{192, 200}));
}

TEST(Pieces, HoldAtLeastTheGranularity) {
  const Pieces pieces =
      cut_pieces(arguments(ShardTable::uniform(2, 100), 1, 30));
  EXPECT_EQ(pieces.length, 30);
  EXPECT_EQ(pieces.count, 4);
}

TEST(Pieces, AreTheSameForUnequalShards) {
  const std::vector<std::int64_t> offsets = {0, 5, 5, 25};
  const Pieces pieces = cut_pieces(arguments(ShardTable(offsets), 64, 1));
  EXPECT_EQ(pieces.length, 8);
  EXPECT_EQ(pieces.count, 3);
  EXPECT_EQ(pieces.count_in(5), 1);
  EXPECT_EQ(pieces.count_in(0), 0);
  EXPECT_EQ(pieces.count_in(20), 3);
  EXPECT_TRUE(pieces.of(1, 5).empty());
}

TEST(Pieces, AreOneWithoutPeers) {
  const Pieces pieces =
      cut_pieces(arguments(ShardTable::uniform(1, 1000), 16, 1));
  EXPECT_EQ(pieces.count, 1);
  EXPECT_EQ(pieces.length, 1000);
}

TEST(Pieces, AreNoneOfAnEmptyBucket) {
  EXPECT_EQ(cut_pieces(arguments(ShardTable::uniform(3, 0), 16, 4)).count, 0);
}

TEST(Pieces, AreCountedPast32Bits) {
  const std::int64_t shard = (std::int64_t{1} << 40) + 8;
  const Pieces pieces = cut_pieces(
      arguments(ShardTable::uniform(10000, shard), std::int64_t{25} << 20, 64));
  EXPECT_EQ(pieces.length, 640);
  EXPECT_EQ(pieces.count, (shard + 639) / 640);
  EXPECT_EQ(pieces.of(pieces.count - 1, shard).end, shard);
}

}  // namespace
}  // namespace kzero::detail
