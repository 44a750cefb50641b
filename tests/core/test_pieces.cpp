// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/pieces.hpp"

namespace kzero::detail {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

Pieces reduction(ShardTable shards, std::int64_t bytes,
                 std::int64_t granularity) {
  return cut_reduction(
      shards, {.element_bytes = 4, .bytes = bytes, .granularity = granularity});
}

Pieces gather(ShardTable shards, std::int64_t bytes,
              std::int64_t element_bytes = 4) {
  return cut_gather(
      shards,
      {.element_bytes = element_bytes, .bytes = bytes, .granularity = 64});
}

TEST(Pieces, HoldWhatThePeersSend) {
  // 3 peers, 4 bytes an element: 1000 / 12 = 83 elements, to 64.
  const Pieces pieces = reduction(ShardTable::uniform(4, 200), 1000, 64);
  EXPECT_EQ(pieces.length, 64);
  EXPECT_EQ(pieces.count, 4);
  EXPECT_EQ(pieces.of(3, 200), (Range{192, 200}));
}

TEST(Pieces, HoldAtLeastTheGranularity) {
  const Pieces pieces = reduction(ShardTable::uniform(2, 100), 1, 30);
  EXPECT_EQ(pieces.length, 30);
  EXPECT_EQ(pieces.count, 4);
}

TEST(Pieces, AreTheSameForUnequalShards) {
  const std::vector<std::int64_t> offsets = {0, 5, 5, 25};
  const Pieces pieces = reduction(ShardTable(offsets), 64, 1);
  EXPECT_EQ(pieces.length, 8);
  EXPECT_EQ(pieces.count, 3);
  EXPECT_EQ(pieces.count_in(5), 1);
  EXPECT_EQ(pieces.count_in(0), 0);
  EXPECT_EQ(pieces.count_in(20), 3);
  EXPECT_TRUE(pieces.of(1, 5).empty());
}

TEST(Pieces, AreOneWithoutPeers) {
  const Pieces pieces = reduction(ShardTable::uniform(1, 1000), 16, 1);
  EXPECT_EQ(pieces.count, 1);
  EXPECT_EQ(pieces.length, 1000);
}

TEST(Pieces, AreNoneOfAnEmptyBucket) {
  EXPECT_EQ(reduction(ShardTable::uniform(3, 0), 16, 4).count, 0);
  EXPECT_EQ(reduction(ShardTable::uniform(1, 0), 16, 4).count, 0);
  EXPECT_EQ(gather(ShardTable::uniform(3, 0), 16).count, 0);
  EXPECT_EQ(gather(ShardTable(), 16).count, 0);
}

TEST(Pieces, AreCountedPast32Bits) {
  const std::int64_t shard = (std::int64_t{1} << 40) + 8;
  const Pieces pieces =
      reduction(ShardTable::uniform(10000, shard), std::int64_t{25} << 20, 64);
  EXPECT_EQ(pieces.length, 640);
  EXPECT_EQ(pieces.count, (shard + 639) / 640);
  EXPECT_EQ(pieces.of(pieces.count - 1, shard).end, shard);
}

TEST(GatherPieces, HoldThePartsOfAllRanks) {
  // 4 ranks of 4 bytes: 3000 / 16 = 187 elements, to 64.
  const Pieces pieces = gather(ShardTable::uniform(4, 320), 3000);
  EXPECT_EQ(pieces.length, 128);
  EXPECT_EQ(pieces.count, 3);
  EXPECT_EQ(pieces.of(2, 320), (Range{256, 320}));
}

TEST(GatherPieces, HoldAtLeast64ElementsOfEach) {
  const Pieces pieces = gather(ShardTable::uniform(3, 192), 1);
  EXPECT_EQ(pieces.length, 64);
  EXPECT_EQ(pieces.count, 3);
}

TEST(GatherPieces, AreNoLongerThanTheLargestShard) {
  EXPECT_EQ(gather(ShardTable::uniform(2, 128), unlimited).length, 128);
  EXPECT_EQ(gather(ShardTable::uniform(2, 128), unlimited).count, 1);
  const std::vector<std::int64_t> offsets = {0, 5, 5, 25};
  EXPECT_EQ(gather(ShardTable(offsets), unlimited).length, 20);
}

TEST(GatherPieces, AreCutWithoutPeersToo) {
  const Pieces pieces = gather(ShardTable::uniform(1, 1000), 512, 2);
  EXPECT_EQ(pieces.length, 256);
  EXPECT_EQ(pieces.count, 4);
}

TEST(GatherPieces, FitTheirBytesByTheMostElements) {
  for (const int ranks : {1, 2, 3, 7})
    for (const std::int64_t element : {2, 4, 8})
      for (const std::int64_t bytes : {1, 1000, 4096, 100'000}) {
        const std::int64_t length =
            gather(ShardTable::uniform(ranks, 1 << 20), bytes, element).length;
        EXPECT_EQ(length % 64, 0);
        EXPECT_TRUE(length == 64 || ranks * length * element <= bytes);
        EXPECT_GT(ranks * (length + 64) * element, bytes);
      }
}

}  // namespace
}  // namespace kzero::detail
