// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "comm/backends.hpp"

namespace kzero::test {
namespace {

const std::int64_t byte_sizes[] = {0, 1, 2, 7, 64, 997, 10007};

std::vector<std::byte> bytes_of(int rank, std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] =
        static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank) * 31);
  }
  return bytes;
}

class SmallCollectives : public OverBackends {};

TEST_P(SmallCollectives, AllGatherIsInRankOrder) {
  for (const std::int64_t bytes : byte_sizes) {
    const std::vector<std::byte> own = bytes_of(rank, bytes);
    std::vector<std::byte> all(static_cast<std::size_t>(bytes * size));
    communicator->all_gather(own.data(), bytes, all.data(), {"names"});
    std::vector<std::byte> expected;
    for (int r = 0; r < size; ++r) {
      const std::vector<std::byte> part = bytes_of(r, bytes);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, expected) << bytes;
  }
}

TEST_P(SmallCollectives, BroadcastReachesEveryRank) {
  for (int root = 0; root < size; ++root) {
    for (const std::int64_t bytes : byte_sizes) {
      std::vector<std::byte> data = bytes_of(rank, bytes);
      communicator->broadcast(data.data(), bytes, root, {"parameters"});
      EXPECT_EQ(data, bytes_of(root, bytes)) << bytes << " from " << root;
    }
  }
}

TEST_P(SmallCollectives, LargeBroadcastFollowsItselfInPieces) {
  // Many pieces. Fewer where each is a tiny message and the ranks far outnumber
  // the cores: then most of the time goes into waiting for a turn.
  const bool are_tiny = GetParam().options.message_bytes < 1000;
  const std::int64_t bytes = !are_tiny   ? 5'000'011
                             : size <= 6 ? 100'003
                                         : 10'001;
  for (int root = 0; root < size; ++root) {
    std::vector<std::byte> data = bytes_of(rank, bytes);
    communicator->broadcast(data.data(), bytes, root, {"parameters"});
    EXPECT_TRUE(data == bytes_of(root, bytes)) << "from " << root;
  }
}

TEST_P(SmallCollectives, GatherAndScatterMoveShards) {
  for (const Shards& shards : shard_tables(size)) {
    for (int root = 0; root < size; ++root) {
      const ShardTable table = shards.table();
      constexpr std::int64_t width = 3;  // bytes an element
      const std::vector<std::byte> whole = bytes_of(5, table.total() * width);
      const Range own = table.range(rank);
      const std::vector<std::byte> part(whole.begin() + own.begin * width,
                                        whole.begin() + own.end * width);

      std::vector<std::byte> gathered(rank == root ? whole.size() : 0);
      communicator->gather(part.data(), gathered.data(), table, width, root,
                           {"state"});
      if (rank == root) {
        EXPECT_EQ(gathered, whole);
      }

      std::vector<std::byte> scattered(part.size());
      communicator->scatter(gathered.data(), scattered.data(), table, width,
                            root, {"state"});
      EXPECT_EQ(scattered, part);
    }
  }
}

TEST_P(SmallCollectives, BarrierWaitsForEveryRank) {
  // Whoever leaves it knows that all have come: what they sent before is here.
  for (int round = 0; round < 20; ++round) {
    communicator->barrier({"barrier"});
  }
}

TEST_P(SmallCollectives, SumsAreAddedInRankOrder) {
  // 1 + 2^-53 is 1, so the order shows.
  const double tiny = std::ldexp(1.0, -53);
  std::vector<double> values = {rank == 0 ? 1.0 : tiny,
                                rank == size - 1 ? 1.0 : tiny};
  communicator->all_reduce_sum(std::span(values), {"norm"});
  double expected[] = {1.0, size == 1 ? 1.0 : tiny};
  for (int r = 1; r < size; ++r) {
    expected[0] += tiny;
    expected[1] += r == size - 1 ? 1.0 : tiny;
  }
  EXPECT_EQ(values[0], expected[0]);
  EXPECT_EQ(values[1], expected[1]);
}

TEST_P(SmallCollectives, SumsAndExtremaOfManyIntegers) {
  // More than one part of the work space, unless the messages are tiny.
  const std::size_t count =
      GetParam().options.message_bytes < 1000 ? 1001 : 200'003;
  std::vector<std::int64_t> sum(count);
  std::iota(sum.begin(), sum.end(), std::int64_t{rank} << 40);
  std::vector<std::int64_t> least = sum;
  std::vector<std::int64_t> most = sum;
  communicator->all_reduce_sum(std::span(sum), {"count"});
  communicator->all_reduce(std::span(least), Extremum::minimum, {"least"});
  communicator->all_reduce(std::span(most), Extremum::maximum, {"most"});
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t pairs = std::int64_t{size} * (size - 1) / 2;
    ASSERT_EQ(sum[i], index * size + (pairs << 40));
    ASSERT_EQ(least[i], index);
    ASSERT_EQ(most[i], index + (std::int64_t{size - 1} << 40));
  }
  communicator->all_reduce_sum(std::span<double>(), {"nothing"});
}

OVER_ALL_BACKENDS(SmallCollectives);

}  // namespace
}  // namespace kzero::test
