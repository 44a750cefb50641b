// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"

namespace kzero::test {
namespace {

class BytesSent : public OverBackends {
 protected:
  void reduce(Communicator& on, const Shards& shards, DType dtype, int index) {
    CheckedReduction(on, dtype, shards.table(), {100, 8, nullptr}, index)
        .take_all();
  }
  void gather(Communicator& on, const Shards& shards, DType dtype, int index) {
    CheckedGather(on, dtype, shards.table(), index).ticket->wait();
  }

  /// Between nodes one rank passes on what others send or take in: then those
  /// of all ranks together are looked at.
  std::int64_t counted(std::int64_t bytes) const {
    if (GetParam().nodes != Nodes::all)
      communicator->all_reduce_sum(std::span(&bytes, 1), {"test"});
    return bytes;
  }
  void expect(Communicator& on, std::int64_t bytes) const {
    EXPECT_EQ(counted(on.bytes_sent()), counted(bytes));
  }
};

// What is not this rank's goes to its owner once, what is goes to all others.
TEST_P(BytesSent, AreThoseOfBuckets) {
  std::int64_t expected = 0;
  EXPECT_EQ(communicator->bytes_sent(), 0);
  for (const Shards& shards : shard_tables(size))
    for (const DType dtype : all_dtypes) {
      const ShardTable table = shards.table();
      reduce(*communicator, shards, dtype, 0);
      expected += (table.total() - table.size(rank)) * size_of(dtype);
      expect(*communicator, expected);
      gather(*communicator, shards, dtype, 7);
      expected += table.size(rank) * (size - 1) * size_of(dtype);
      expect(*communicator, expected);
    }
}

// Every shard gets the sum of each block: by a message from another node, and
// from the ranks of a block to the one that adds it up.
TEST_P(BytesSent, OfSumsAreThoseOfTheirParts) {
  if (GetParam().nodes == Nodes::all) GTEST_SKIP() << "for several nodes";
  const Shards shards = shard_tables(size).back();
  for (const DType dtype : {DType::float32, DType::float64}) {
    const std::int64_t before = counted(communicator->bytes_sent());
    CheckedReduction(*communicator, dtype, shards.table(), {100, 8}, 0)
        .take_all();
    EXPECT_EQ(counted(communicator->bytes_sent()) - before,
              (size - 1) * shards.table().total() * size_of(dtype));
  }
}

TEST_P(BytesSent, AreNotThoseOfOtherCollectives) {
  const Shards shards(
      std::vector<std::int64_t>(static_cast<std::size_t>(size), 5));
  reduce(*communicator, shards, DType::float32, -1);
  gather(*communicator, shards, DType::float32, -1);
  std::vector<double> all(static_cast<std::size_t>(5 * size));
  std::vector<double> own(5);
  const Subject subject{"test", 3};
  communicator->all_gather(own.data(), 40, all.data(), subject);
  communicator->broadcast(own.data(), 40, 0, subject);
  communicator->gather(own.data(), all.data(), shards.table(), 8, 0, subject);
  communicator->scatter(all.data(), own.data(), shards.table(), 8, 0, subject);
  communicator->barrier(subject);
  EXPECT_EQ(communicator->bytes_sent(), 0);
}

TEST_P(BytesSent, OfDuplicatesAreTheirOwn) {
  const Shards shards(
      std::vector<std::int64_t>(static_cast<std::size_t>(size), 5));
  gather(*communicator, shards, DType::float64, 0);
  const auto duplicate = communicator->duplicate();
  EXPECT_EQ(duplicate->bytes_sent(), 0);
  reduce(*duplicate, shards, DType::float32, 0);
  expect(*duplicate, 5 * (size - 1) * 4);
  expect(*communicator, 5 * (size - 1) * 8);
}

OVER_ALL_BACKENDS(BytesSent);

}  // namespace
}  // namespace kzero::test
