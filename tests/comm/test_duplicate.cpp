// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A duplicate does what the original does, apart from it: on every rank in
// another order, and from another thread.
#include <gtest/gtest.h>

#include <cstring>
#include <kzero/error.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"
#include "comm/failures.hpp"

namespace kzero::test {
namespace {

class Duplicate : public OverBackends {
 protected:
  std::shared_ptr<Communicator> duplicate = communicator->duplicate();
};

/// Every kind of collective, several times.
void use(Communicator& communicator, int salt) {
  const ShardTable shards = ShardTable::uniform(communicator.size(), 300);
  for (int round = 0; round < 8; ++round) {
    const int index = 2 * round + salt;
    CheckedReduction first(communicator, DType::float32, shards, {500, 8},
                           index);
    CheckedReduction second(communicator, DType::bfloat16, shards, {500, 8},
                            index);
    CheckedGather gather(communicator, DType::float32, shards, index);
    std::int64_t sum = 1;
    communicator.all_reduce_sum(std::span(&sum, 1), {"sum"});
    EXPECT_EQ(sum, communicator.size());
    std::int64_t root = communicator.rank();
    communicator.broadcast(&root, sizeof(root), communicator.size() - 1, {});
    EXPECT_EQ(root, communicator.size() - 1);
    first.take_all();
    second.take_all();
    gather.ticket->wait();
    gather.check();
    communicator.barrier({});
  }
}

TEST_P(Duplicate, SaysTheSame) {
  EXPECT_EQ(duplicate->describe(), communicator->describe());
  EXPECT_EQ(duplicate->rank(), rank);
  EXPECT_EQ(duplicate->size(), size);
  EXPECT_EQ(duplicate->timeout(), communicator->timeout());
  EXPECT_EQ(duplicate->concurrent(), communicator->concurrent());
}

TEST_P(Duplicate, OutlivesTheOriginalAndHasDuplicates) {
  communicator.reset();
  const auto again = duplicate->duplicate();
  duplicate.reset();
  use(*again, 0);
}

TEST_P(Duplicate, IsInNoOrderWithTheOriginal) {
  const ShardTable shards = ShardTable::uniform(size, 500);
  const Cut one_piece{1 << 20, 1};  // more move when every rank takes them
  Communicator& a = *communicator;
  Communicator& b = *duplicate;
  for (int round = 0; round < 5; ++round) {
    // Rank by rank the other one is the first, in starting and in taking.
    const bool turned = (rank + round) % 2 == 1;
    Communicator& first = turned ? b : a;
    Communicator& second = turned ? a : b;
    CheckedReduction r1(first, DType::float32, shards, one_piece, turned);
    CheckedGather g1(first, DType::float32, shards, turned);
    CheckedReduction r2(second, DType::float32, shards, one_piece, !turned);
    CheckedGather g2(second, DType::float32, shards, !turned);
    r2.take_pieces();
    g2.ticket->wait();
    r1.take_pieces();
    g1.ticket->wait();
    g1.check();
    g2.check();
    r1.end();
    r2.end();
  }
}

TEST_P(Duplicate, RunsInAThreadOfItsOwn) {
  if (!communicator->concurrent()) GTEST_SKIP() << "MPI is for one thread";
  std::thread other([&] { use(*duplicate, 1); });
  use(*communicator, 0);
  other.join();
}

TEST_P(Duplicate, IsMadeWhileOthersWork) {
  if (!communicator->concurrent()) GTEST_SKIP() << "MPI is for one thread";
  std::thread other([&] { use(*duplicate, 1); });
  const auto third = communicator->duplicate();
  use(*third, 2);
  other.join();
}

TEST_P(Duplicate, TakesMemoryOfTheOriginalAndFreesIt) {
  if (!communicator->concurrent()) GTEST_SKIP() << "MPI is for one thread";
  const std::int64_t bytes = 100 * size;
  std::shared_ptr<void> memory = communicator->allocate(bytes);
  std::thread other([this, memory = std::move(memory)]() mutable {
    GatherArguments arguments;
    arguments.bucket = memory.get();
    arguments.shards = ShardTable::uniform(size, 25);
    duplicate->start_all_gather(arguments)->wait();
    memory.reset();
  });
  use(*communicator, 0);
  other.join();
}

class BrokenDuplicate : public Duplicate {
 protected:
  /// Leaves messages to this memory under way on the duplicate.
  void drop_gather(void* bucket) {
    GatherArguments arguments;
    arguments.bucket = bucket;
    arguments.shards = ShardTable::uniform(size, 300);
    const Ticket dropped = duplicate->start_all_gather(arguments);
  }
};

TEST_P(BrokenDuplicate, LeavesTheOriginalAlone) {
  const std::shared_ptr<void> memory = duplicate->allocate(1200 * size);
  drop_gather(memory.get());
  expect_unusable(*duplicate, "all-gather of bucket 0: dropped");
  use(*communicator, 0);
  use(*communicator->duplicate(), 1);
}

TEST_P(BrokenDuplicate, KeepsMemoryOfTheOriginal) {
  std::shared_ptr<void> memory = communicator->allocate(1200 * size);
  drop_gather(memory.get());
  auto* const late = static_cast<char*>(memory.get());
  memory.reset();
  std::memset(late, 7, 1200);  // what a late message does
  EXPECT_EQ(late[1199], 7);
}

TEST_P(BrokenDuplicate, IsOfNoUseToItsOwnDuplicates) {
  const auto third = duplicate->duplicate();
  const std::shared_ptr<void> memory = duplicate->allocate(1200 * size);
  drop_gather(memory.get());
  EXPECT_THROW(duplicate->duplicate(), CommunicationError);
  use(*third, 0);
}

OVER_ALL_BACKENDS(Duplicate);
OVER_ALL_BACKENDS(BrokenDuplicate);

}  // namespace
}  // namespace kzero::test
