// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Several communicators at once, and the caller's own use of MPI beside them.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

/// Runs every kind of collective once.
void use(Communicator& communicator, int salt) {
  const ShardTable shards = ShardTable::uniform(communicator.size(), 100);
  CheckedReduction reduction(communicator, DType::float32, shards, {64, 4},
                             salt);
  CheckedGather gather(communicator, DType::bfloat16, shards, salt);
  reduction.take_all();
  gather.ticket->wait();
  gather.check();
  std::int64_t root = communicator.rank();
  communicator.broadcast(&root, sizeof(root), communicator.size() - 1, {});
  EXPECT_EQ(root, communicator.size() - 1);
}

std::vector<int> world_ranks(Communicator& communicator) {
  const int own = world_rank();
  std::vector<int> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&own, sizeof(own), all.data(), {});
  return all;
}

TEST(Groups, CyclicPartsOfTheRanks) {
  const OwnComm part(world_rank() % 2, world_rank());
  const auto communicator = make_communicator(part);
  std::vector<int> expected;
  for (int rank = world_rank() % 2; rank < world_size(); rank += 2) {
    expected.push_back(rank);
  }
  EXPECT_EQ(world_ranks(*communicator), expected);
  use(*communicator, world_rank() % 2);
}

TEST(Groups, RanksInReverse) {
  const OwnComm reversed(0, -world_rank());
  const auto communicator = make_communicator(reversed);
  std::vector<int> expected(static_cast<std::size_t>(world_size()));
  std::iota(expected.rbegin(), expected.rend(), 0);
  EXPECT_EQ(world_ranks(*communicator), expected);
  use(*communicator, 0);
}

TEST(Groups, OverlappingGroupsOfARank) {
  const OwnComm part(world_rank() % 2, world_rank());
  const auto all = make_communicator(MPI_COMM_WORLD);
  const auto some = make_communicator(part);
  for (int step = 0; step < 3; ++step) {
    use(*all, step);
    use(*some, step + 3);
  }
}

TEST(Groups, TwoOverTheSameRanksDoNotMix) {
  const CommunicatorOptions options{Backend::mpi, std::chrono::seconds(30)};
  const auto a = make_communicator(MPI_COMM_WORLD, options);
  const auto b = make_communicator(MPI_COMM_WORLD, options);
  const ShardTable shards = ShardTable::uniform(a->size(), 300);
  for (int step = 0; step < 5; ++step) {
    // Both under way at the same time, taken the other way round.
    CheckedReduction first(*a, DType::float32, shards, {200, 8}, 2 * step);
    CheckedReduction second(*b, DType::float32, shards, {200, 8}, 2 * step + 1);
    CheckedGather third(*a, DType::float32, shards, 2 * step);
    CheckedGather fourth(*b, DType::float32, shards, 2 * step + 1);
    second.take_all();
    first.take_all();
    fourth.ticket->wait();
    third.ticket->wait();
    third.check();
    fourth.check();
  }
}

void ignore_error(MPI_Comm*, int*, ...) {}

TEST(Groups, CallersErrorHandlerStays) {
  const OwnComm own;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(ignore_error, &handler);
  MPI_Comm_set_errhandler(own, handler);
  const auto communicator = make_communicator(own, {Backend::mpi});
  use(*communicator, 1);
  MPI_Errhandler after = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(own, &after);
  EXPECT_EQ(after, handler);
  MPI_Errhandler_free(&after);
  MPI_Errhandler_free(&handler);
}

TEST(Groups, CallersMessagesDoNotMix) {
  const OwnComm own;
  const int rank = world_rank();
  const int size = world_size();
  const auto communicator =
      make_communicator(own, {Backend::mpi, std::chrono::seconds(30)});
  // These would take the first message of any tag on the caller's communicator.
  int received = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &request);
  use(*communicator, 2);
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  EXPECT_EQ(done, 0);
  MPI_Barrier(own);
  // And these are in the way of any receive there, whatever its tag.
  const std::vector<int> tags = {0, 1, 512, 4096, 28672, 32767};
  std::vector<MPI_Request> sends(tags.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, tags[i], own, &sends[i]);
  }
  use(*communicator, 3);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (std::size_t i = 1; i < tags.size(); ++i) {
    MPI_Recv(&received, 1, MPI_INT, MPI_ANY_SOURCE, tags[i], own,
             MPI_STATUS_IGNORE);
    EXPECT_EQ(received, (rank + size - 1) % size);
  }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(),
              MPI_STATUSES_IGNORE);
}

TEST(Groups, MoreCallsThanTagsTell) {
  const auto communicator = make_communicator(
      MPI_COMM_WORLD, {Backend::mpi, std::chrono::seconds(30)});
  for (std::int64_t call = 0; call < 2000; ++call) {
    std::int64_t value = call;
    communicator->broadcast(&value, sizeof(value), 0, {});
    ASSERT_EQ(value, call);
  }
  communicator->barrier({});
}

int freed = 0;

int count_freed(MPI_Comm, int, void*, void*) {
  ++freed;
  return MPI_SUCCESS;
}

TEST(Groups, DuplicateIsGivenBack) {
  const OwnComm own;
  // The first one over these ranks is kept until MPI ends.
  make_communicator(own, {Backend::mpi});
  // An attribute goes with a duplicate, and tells when it ends.
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, count_freed, &key, nullptr);
  MPI_Comm_set_attr(own, key, nullptr);
  freed = 0;
  auto communicator = make_communicator(own, {Backend::mpi});
  auto duplicate = communicator->duplicate();
  use(*communicator, 0);
  EXPECT_EQ(freed, 0);
  communicator.reset();
  EXPECT_EQ(freed, 1);
  use(*duplicate, 0);
  duplicate.reset();
  EXPECT_EQ(freed, 2);
  MPI_Comm_delete_attr(own, key);
  MPI_Comm_free_keyval(&key);
}

}  // namespace
}  // namespace kzero::test
