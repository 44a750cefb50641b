// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/error.hpp>
#include <thread>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"

namespace kzero::test {
namespace {

class Reduction : public OverBackends {};

TEST_P(Reduction, GivesEveryContribution) {
  int index = 0;
  for (const Shards& shards : shard_tables(size)) {
    for (const DType dtype : all_dtypes) {
      for (const Cut cut : {Cut{1 << 20, 1}, Cut{1, 16}, Cut{100, 1}}) {
        SCOPED_TRACE(testing::Message()
                     << "reduction " << index << ", " << to_string(dtype));
        CheckedReduction reduction(*communicator, dtype, shards.table(), cut,
                                   index++);
        ASSERT_NO_FATAL_FAILURE(reduction.take_all());
      }
    }
  }
}

TEST_P(Reduction, WorksWithEqualShardsWithoutOffsets) {
  CheckedReduction reduction(*communicator, DType::float32,
                             ShardTable::uniform(size, 100), {64, 8}, 0);
  reduction.take_all();
}

TEST_P(Reduction, SeveralAreUnderWayAndTakenInOrder) {
  const std::vector<Shards> tables = shard_tables(size);
  for (int round = 0; round < 3; ++round) {
    std::vector<CheckedReduction> reductions;
    reductions.reserve(tables.size());
    int index = 0;
    for (const Shards& shards : tables) {
      reductions.emplace_back(*communicator, DType::bfloat16, shards.table(),
                              Cut{40, 4}, index++);
    }
    for (CheckedReduction& reduction : reductions) {
      ASSERT_NO_FATAL_FAILURE(reduction.take_all());
    }
  }
}

TEST_P(Reduction, OtherCollectivesMayComeBetween) {
  CheckedReduction first(*communicator, DType::float32,
                         ShardTable::uniform(size, 50), {40, 1}, 0);
  communicator->barrier({"first barrier"});
  CheckedReduction second(*communicator, DType::float32,
                          ShardTable::uniform(size, 50), {40, 1}, 1);
  std::int64_t value = rank;
  communicator->all_reduce(std::span(&value, 1), Extremum::maximum, {"max"});
  EXPECT_EQ(value, size - 1);
  first.take_all();
  communicator->barrier({"second barrier"});
  second.take_all();
}

TEST_P(Reduction, IsRefusedOutOfOrder) {
  CheckedReduction first(*communicator, DType::float32,
                         ShardTable::uniform(size, 50), {1 << 20, 1}, 0);
  CheckedReduction second(*communicator, DType::float32,
                          ShardTable::uniform(size, 50), {1 << 20, 1}, 1);
  const std::string message =
      message_of<InvalidArgument>([&] { second.ticket->next(); });
  EXPECT_NE(message.find("reduce of bucket 1 refused"), std::string::npos)
      << message;
  EXPECT_NE(message.find("reduce of bucket 0"), std::string::npos) << message;
  // It did no harm.
  first.take_all();
  second.take_all();
}

TEST_P(Reduction, AdvancesWithoutWaiting) {
  for (const Shards& shards : shard_tables(size)) {
    CheckedReduction reduction(*communicator, DType::float64, shards.table(),
                               {100, 1}, 0);
    while (!reduction.ticket->test()) std::this_thread::yield();
    reduction.take_all();
    // With a piece in hand as well: it ends although nothing is taken.
    CheckedReduction other(*communicator, DType::float64, shards.table(),
                           {100, 1}, 1);
    while (const Contributions* piece = other.ticket->next()) {
      const double before = value_at(piece->parts[0].data, piece->dtype, 0);
      while (!other.ticket->test()) std::this_thread::yield();
      EXPECT_EQ(value_at(piece->parts[0].data, piece->dtype, 0), before);
    }
    other.end();
  }
}

TEST_P(Reduction, StagingHoldsTwoPieces) {
  constexpr std::int64_t shard = 1000;
  CheckedReduction reduction(*communicator, DType::float32,
                             ShardTable::uniform(size, shard), {1200, 1}, 0);
  reduction.take_all();
  EXPECT_LE(communicator->staging_bytes(), 2 * (1200 + 64 * size));
}

OVER_ALL_BACKENDS(Reduction);

}  // namespace
}  // namespace kzero::test
