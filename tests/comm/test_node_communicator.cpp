// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What only ranks that share memory have: the choice, the fall back to
// messages, memory that peers cannot read, and that nothing is left.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <kzero/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"
#include "comm/failures.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

using std::chrono::seconds;

std::shared_ptr<Communicator> make_node(
    std::chrono::milliseconds timeout = seconds(30)) {
  return make_communicator(MPI_COMM_WORLD, {Backend::node, timeout});
}

/// Bytes of the library's shared memory that this process maps.
std::int64_t mapped_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::int64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:kzero") == std::string::npos) continue;
    char* end = nullptr;
    const auto begin = std::strtoll(line.c_str(), &end, 16);
    bytes += std::strtoll(end + 1, nullptr, 16) - begin;
  }
  return bytes;
}

class Limit {
 public:
  Limit(int resource, rlim_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    const rlimit limit{value, before_.rlim_max};
    setrlimit(resource_, &limit);
  }
  ~Limit() { setrlimit(resource_, &before_); }

 private:
  int resource_;
  rlimit before_{};
};

TEST(NodeCommunicator, FallsBackToMessagesOnAllRanks) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  const int last = world_size() - 1;
  for (const auto& [resource, name] :
       {std::pair{RLIMIT_AS, "ulimit -v"}, {RLIMIT_FSIZE, "ulimit -f"}}) {
    std::optional<Limit> limit;
    if (world_rank() == last) limit.emplace(resource, rlim_t{1} << 45);
    const auto communicator = make_node();
    const std::string text = communicator->describe();
    EXPECT_EQ(text.find("mpi: "), 0u) << text;
    expect_part(text, "(chosen by option); (no shared memory: ");
    expect_part(text, std::string(name) + " limits it (rank " +
                          std::to_string(last) + ")");
    CheckedReduction(*communicator, DType::float32,
                     ShardTable::uniform(world_size(), 10), {1 << 20, 1}, 0)
        .take_all();
  }
}

class BackendVariable : public testing::Test {
 protected:
  void TearDown() override { unsetenv("KZERO_BACKEND"); }
};

TEST_F(BackendVariable, TakesThePlaceOfAutomatic) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  for (const std::string name : {"mpi", "node"}) {
    setenv("KZERO_BACKEND", name.c_str(), 1);
    const std::string text = make_communicator(MPI_COMM_WORLD)->describe();
    EXPECT_EQ(text.find(name + ": "), 0u) << text;
    expect_part(text, "(chosen by KZERO_BACKEND)");
  }
  setenv("KZERO_BACKEND", "mpi", 1);
  expect_part(make_node()->describe(), "node: ");
  setenv("KZERO_BACKEND", "automatic", 1);
  expect_part(make_communicator(MPI_COMM_WORLD)->describe(), "node: ");
}

TEST_F(BackendVariable, IsRefusedOnAllRanksWhenItIsWrongOnOne) {
  setenv("KZERO_BACKEND", world_rank() == 0 ? "shared" : "mpi", 1);
  const std::string message =
      message_of<InvalidArgument>([] { make_communicator(MPI_COMM_WORLD); });
  expect_part(message, "KZERO_BACKEND is \"shared\": set it to automatic, mpi");
}

TEST_F(BackendVariable, IsTheSameOnAllRanks) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  setenv("KZERO_BACKEND", world_rank() == 1 ? "node" : "mpi", 1);
  const std::string message =
      message_of<InvalidArgument>([] { make_communicator(MPI_COMM_WORLD); });
  expect_part(message,
              "backends differ between the ranks of a communicator (rank 0: "
              "mpi, rank 1: node)");
}

TEST(NodeCommunicator, NamesWhatAPeerCallsInstead) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  const auto communicator = make_node();
  const ShardTable shards = ShardTable::uniform(world_size(), 8);
  const std::string message = message_of<CommunicationError>([&] {
    if (world_rank() == 0)
      CheckedGather(*communicator, DType::bfloat16, shards, 5).ticket->wait();
    else
      CheckedReduction(*communicator, DType::float32, shards, {1 << 20, 1}, 4)
          .ticket->next();
  });
  if (world_rank() > 0 && message.find("has given") == std::string::npos)
    expect_part(message, "rank 0 calls an all-gather of a bucket");
  EXPECT_NE(message, "");
  expect_unusable(*communicator, message);
}

// Well before the timeout.
TEST(NodeCommunicator, LearnsThatAPeerHasGivenUp) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  const auto communicator = make_node(std::chrono::minutes(10));
  const ShardTable shards = ShardTable::uniform(world_size(), 8);
  if (world_rank() == 0) {
    CheckedReduction(*communicator, DType::float32, shards, {1 << 20, 1}, 3);
    return;
  }
  const std::string message = message_of<CommunicationError>(
      [&] { communicator->barrier({"end of epoch"}); });
  if (world_size() == 2)
    expect_part(message, "rank 0 has given the communicator up");
  expect_unusable(*communicator, "end of epoch");
}

/// More operations under way than there are places for, in one allocation.
class ManyOperations : public testing::Test {
 protected:
  static constexpr int count = 1100;

  ReductionTicket reduce(int index, ShardTable shards) {
    ReduceArguments arguments;
    arguments.bucket = memory_.get();
    arguments.shards = shards;
    arguments.sum = add_exactly;
    arguments.index = index;
    return communicator->start_reduce(arguments);
  }
  std::vector<ReductionTicket> reduce_all(ShardTable shards) {
    std::vector<ReductionTicket> tickets;
    for (int i = 0; i < count; ++i) tickets.push_back(reduce(i, shards));
    return tickets;
  }
  static void take(const std::vector<ReductionTicket>& tickets) {
    for (const ReductionTicket& ticket : tickets)
      while (ticket->next() != nullptr) {
      }
  }
  static void end(const std::vector<ReductionTicket>& tickets) {
    for (const ReductionTicket& ticket : tickets) ticket->wait();
  }

  const std::shared_ptr<Communicator> communicator = make_node();
  const ShardTable shards_ = ShardTable::uniform(world_size(), 3);

 private:
  std::shared_ptr<void> memory_ = allocate_copy(
      *communicator, make_bucket(DType::float32, 3 * world_size(), 0));
};

TEST_F(ManyOperations, WaitForRoom) {
  for (int round = 0; round < 2; ++round) {
    std::vector<ReductionTicket> reductions;
    std::vector<Ticket> gathers;
    std::vector<std::byte> own =
        make_bucket(DType::float32, shards_.total(), 0);
    const std::shared_ptr<void> bucket = allocate_copy(*communicator, own);
    for (int i = 0; i < count; ++i) {
      reductions.push_back(reduce(i, shards_));
      GatherArguments arguments;
      arguments.bucket = bucket.get();
      arguments.shards = shards_;
      arguments.index = i;
      gathers.push_back(communicator->start_all_gather(arguments));
    }
    take(reductions);
    end(reductions);
    for (const Ticket& ticket : gathers) ticket->wait();
  }
}

// The parameters of a step that are kept are exchanged among many reductions.
TEST_F(ManyOperations, AreTakenAfterAGather) {
  std::vector<ReductionTicket> reductions;
  for (int i = 0; i < 1000; ++i) reductions.push_back(reduce(i, shards_));
  CheckedGather gather(*communicator, DType::bfloat16, shards_, 0);
  reductions.front()->next();
  gather.ticket->wait();
  gather.check();
  take(reductions);
  end(reductions);
}

// A rank without elements could be done with an operation that no rank has
// seen.
TEST_F(ManyOperations, OfARankWithoutElements) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(world_size()) + 1,
                                    3);
  offsets[0] = 0;
  const OwnComm own;
  CheckedGather gather(*communicator, DType::float32, shards_, 0);
  if (world_rank() == 0) {
    gather.ticket->wait();
    gather.check();
  }
  const auto reductions = reduce_all(ShardTable(offsets));
  take(reductions);
  if (world_rank() > 0) {
    gather.ticket->wait();
    gather.check();
  }
  end(reductions);
  const auto empty = reduce_all(ShardTable::uniform(world_size(), 0));
  take(empty);
  end(empty);
  communicator->barrier({});
}

TEST_F(ManyOperations, AfterOneThatWasLeft) {
  CheckedGather gather(*communicator, DType::float32, shards_, 0);
  if (world_rank() == 0) {
    gather.ticket->leave();
  } else {
    gather.ticket->wait();
    gather.check();
  }
  const auto reductions = reduce_all(shards_);
  take(reductions);
  if (world_rank() == 0) gather.ticket->wait();
  end(reductions);
}

// A wait for messages of one communicator lets peers have what another has.
TEST(NodeCommunicator, GoesOnWhileAnotherCommunicatorWaits) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  const auto communicator = make_node();
  const ShardTable shards = ShardTable::uniform(world_size(), 100);
  const std::shared_ptr<Communicator> others[] = {
      communicator->duplicate(),
      make_communicator(MPI_COMM_WORLD, {Backend::mpi, seconds(30)})};
  for (const auto& other : others) {
    double value = world_rank();
    if (world_rank() > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CheckedGather gather(*communicator, DType::float32, shards, 0);
    if (world_rank() == 0) {
      other->broadcast(&value, sizeof value, 1, {"test"});
      gather.ticket->wait();
    } else {
      gather.ticket->wait();
      other->broadcast(&value, sizeof value, 1, {"test"});
    }
    gather.check();
    EXPECT_EQ(value, 1);
  }
}

TEST(NodeCommunicator, IsNotEndedByAForkedProcess) {
  const auto communicator = make_node();
  const OwnComm own;
  const ShardTable shards = ShardTable::uniform(world_size(), 100);
  CheckedGather gather(*communicator, DType::float32, shards, 0);
  const pid_t child = fork();
  if (child == 0) {
    gather.ticket.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  meet(own);
  gather.ticket->wait();
  gather.check();
  communicator->barrier({});
}

// Of one rank, of all, and growing.
TEST(NodeCommunicator, TakesMemoryThatPeersCannotRead) {
  const auto communicator = make_node();
  const int rank = world_rank();
  for (const std::int64_t shard : {0, 5, 3000, 100}) {
    for (const int whose : {-1, 0, world_size() - 1}) {
      const ShardTable shards = ShardTable::uniform(world_size(), shard);
      std::vector<std::byte> own =
          make_bucket(DType::float64, shards.total(), rank);
      std::shared_ptr<void> shared = allocate_copy(*communicator, own);
      void* const bucket =
          whose == -1 || whose == rank ? own.data() : shared.get();
      ReduceArguments reduce;
      reduce.bucket = bucket;
      reduce.dtype = DType::float64;
      reduce.shards = shards;
      const ReductionTicket reduction = communicator->start_reduce(reduce);
      while (const Contributions* piece = reduction->next())
        for (const Contribution& part : piece->parts)
          for (std::int64_t i = 0; i < shard; ++i)
            ASSERT_EQ(value_at(part.data, DType::float64, i),
                      element(part.first_rank, rank * shard + i));
      reduction->wait();
      GatherArguments gather;
      gather.bucket = bucket;
      gather.dtype = DType::float64;
      gather.shards = shards;
      communicator->start_all_gather(gather)->wait();
      for (int peer = 0; peer < world_size(); ++peer)
        for (std::int64_t i = 0; i < shard; ++i)
          ASSERT_EQ(value_at(bucket, DType::float64, peer * shard + i),
                    element(peer, peer * shard + i));
    }
  }
}

// A rank that needs nothing more lets its peers end.
TEST(NodeCommunicator, OneMayLeaveAGather) {
  const auto communicator = make_node();
  const ShardTable shards = ShardTable::uniform(world_size(), 100);
  const OwnComm own;
  CheckedGather gather(*communicator, DType::float32, shards, 0);
  if (world_rank() == 0) {
    gather.ticket->leave();
    meet(own);
    gather.ticket->wait();
  } else {
    gather.ticket->wait();
    gather.check();
    meet(own);
  }
}

TEST(NodeCommunicator, GivesAllMemoryBack) {
  const OwnComm own;
  const std::int64_t before = mapped_bytes();
  constexpr std::int64_t bytes = std::int64_t{8} << 20;
  {
    const auto communicator = make_node();
    const ShardTable shards = ShardTable::uniform(world_size(), bytes / 4);
    for (int round = 0; round < 3; ++round) {
      CheckedReduction(*communicator, DType::float32, shards, {1 << 20, 1}, 0)
          .take_all();
      // Peers unmap what they had beside their own.
      EXPECT_LT(mapped_bytes() - before, bytes);
    }
    const auto duplicate = communicator->duplicate();
    duplicate->barrier({});
  }
  EXPECT_EQ(mapped_bytes(), before);
  meet(own);
}

TEST(NodeCommunicator, CommonMemoryIsOneForAll) {
  const auto communicator = make_node();
  const OwnComm own;
  EXPECT_EQ(communicator->sharing().ranks, world_size());
  EXPECT_EQ(communicator->sharing().place, world_rank());
  for (const std::int64_t bytes : {0, 8, 5000}) {
    const std::shared_ptr<void> memory = communicator->allocate_common(bytes);
    if (bytes == 0) continue;
    auto* const value = static_cast<std::int64_t*>(memory.get());
    EXPECT_EQ(*value, 0);
    meet(own);
    if (world_rank() == world_size() - 1) *value = bytes;
    meet(own);
    EXPECT_EQ(*value, bytes);
    meet(own);
    std::int64_t sent = 7;
    if (world_rank() == 0) *value = 7;
    communicator->broadcast(value, sizeof sent, 0, {"test"});
    EXPECT_EQ(*value, 7);
    communicator->broadcast(value, 0, 0, {"test"});
    meet(own);
  }
  for (const std::int64_t wrong : {-1, 5000 + world_rank()}) {
    if (wrong >= 0 && world_size() == 1) continue;
    const std::string message =
        message_of<Error>([&] { communicator->allocate_common(wrong); });
    expect_part(message, "bytes in common: give all one size");
  }
  communicator->barrier({});
}

/// By the system, to this process.
bool is_refused(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return true;
  munmap(memory, size);
  return false;
}

TEST(NodeCommunicator, RefusesMemoryThatThereIsNot) {
  EXPECT_TRUE(is_refused(std::int64_t{1} << 60));
  const auto communicator = make_node();
  for (const int log : {60, 44}) {
    if (!is_refused(std::int64_t{1} << log)) continue;
    const std::string message = message_of<Error>(
        [&] { communicator->allocate(std::int64_t{1} << log); });
    expect_part(message, "no memory for a communication buffer of ");
    expect_part(message, "choose backend mpi");
  }
  // It did no harm.
  communicator->barrier({});
}

}  // namespace
}  // namespace kzero::test
