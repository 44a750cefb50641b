// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What is special to a simulated link. That the results are right is seen where
// it is one of the backends.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <kzero/error.hpp>
#include <kzero/simulated_communicator.hpp>
#include <thread>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"
#include "comm/failures.hpp"
#include "comm/world.hpp"
#include "support/allocation_counter.hpp"

namespace kzero::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds latency(40);

std::shared_ptr<Communicator> make_mpi() {
  return make_communicator(MPI_COMM_WORLD,
                           {Backend::mpi, std::chrono::seconds(30)});
}

/// Latency counts, the bytes of these tests do not.
std::shared_ptr<Communicator> make_slow(nanoseconds how_slow = latency) {
  return make_simulated_communicator(make_mpi(), {how_slow, 1e15});
}

class SimulatedLinkTest : public testing::Test {
 protected:
  const int rank = world_rank();
  const int size = world_size();
};

/// Whether every byte but this rank's shard is 0xFF.
bool is_poisoned(const CheckedGather& gather, const ShardTable& shards,
                 int rank) {
  const auto* bytes = static_cast<const unsigned char*>(gather.bucket.get());
  const Range own = shards.range(rank);
  bool all = true;
  for (std::int64_t i = 0; i < shards.total() * 4; ++i) {
    const bool is_own = i >= own.begin * 4 && i < own.end * 4;
    all = all && (is_own || bytes[i] == 0xff);
  }
  return all;
}

using Gathers = SimulatedLinkTest;

TEST_F(Gathers, ArePoisonedUntilTheDeadlineAndNeverAfter) {
  const auto communicator = make_slow();
  const ShardTable shards = ShardTable::uniform(size, 3000);
  const auto posted = Clock::now();
  CheckedGather gather(*communicator, DType::float32, shards, 0);
  while (!gather.ticket->test()) {
    ASSERT_TRUE(is_poisoned(gather, shards, rank));
  }
  EXPECT_GE(Clock::now() - posted, latency);
  gather.check();
}

TEST_F(Gathers, MayBeWaitedForInAnyOrder) {
  const auto communicator = make_slow(milliseconds(2));
  const ShardTable shards = ShardTable::uniform(size, 300);
  std::vector<CheckedGather> gathers;
  gathers.reserve(6);
  for (int i = 0; i < 6; ++i) {
    gathers.emplace_back(*communicator, DType::float32, shards, i);
  }
  for (std::size_t i = 0; i < 6; ++i) {
    // Another order on every rank.
    CheckedGather& gather =
        gathers[(i * 5 + static_cast<std::size_t>(rank)) % 6];
    gather.ticket->wait();
    gather.check();
  }
}

TEST_F(Gathers, StartWhenTheLastRankHasPosted) {
  const auto communicator = make_slow();
  const OwnComm own;
  const ShardTable shards = ShardTable::uniform(size, 10);
  std::int64_t last_posted = 0;
  if (rank != 0) meet(own);
  // Rank 0 is the first to post, and the others wait for this.
  const auto posted = Clock::now();
  CheckedGather gather(*communicator, DType::float32, shards, 0);
  if (rank == 0) meet(own);
  const std::int64_t mine = posted.time_since_epoch().count();
  MPI_Allreduce(&mine, &last_posted, 1, MPI_INT64_T, MPI_MAX, own);
  gather.ticket->wait();
  EXPECT_GE(Clock::now().time_since_epoch().count(),
            last_posted + nanoseconds(latency).count());
}

using Reductions = SimulatedLinkTest;

TEST_F(Reductions, GiveTheirPiecesOneAfterAnother) {
  // 100 bytes take a millisecond: a piece of 4000 bytes takes 40.
  const auto communicator =
      make_simulated_communicator(make_mpi(), {latency, 1e5});
  const int peers = std::max(size - 1, 1);
  const ShardTable shards = ShardTable::uniform(size, 3000 / peers);
  std::vector<float> bucket(static_cast<std::size_t>(shards.total()), 1.0f);
  ReduceArguments arguments;
  arguments.bucket = bucket.data();
  arguments.shards = shards;
  arguments.piece_bytes = 4000;
  const auto posted = Clock::now();
  const ReductionTicket ticket = communicator->start_reduce(arguments);
  while (const Contributions* piece = ticket->next()) {
    const std::int64_t bytes = 4 * piece->range.end * (size - 1);
    EXPECT_GE(Clock::now() - posted, latency + nanoseconds(bytes * 10'000));
  }
  EXPECT_GE(
      Clock::now() - posted,
      latency + nanoseconds(4 * (shards.total() - shards.size(rank)) * 10'000));
  EXPECT_TRUE(ticket->test());
  ticket->wait();
}

TEST_F(Reductions, TestToldTheTruth) {
  const auto communicator = make_slow(milliseconds(5));
  for (const Shards& shards : shard_tables(size)) {
    CheckedReduction reduction(*communicator, DType::float32, shards.table(),
                               {400, 4}, 0);
    while (!reduction.ticket->test()) std::this_thread::yield();
    reduction.take_all();
  }
}

using Link = SimulatedLinkTest;

TEST_F(Link, PassesTransfersOneAfterAnother) {
  const auto communicator = make_slow();
  const auto duplicate = communicator->duplicate();
  const ShardTable shards = ShardTable::uniform(size, 100);
  const auto posted = Clock::now();
  CheckedGather first(*communicator, DType::float32, shards, 0);
  CheckedReduction second(*communicator, DType::float32, shards, {1 << 20, 1},
                          1);
  // The last one is on another communicator and the same link.
  CheckedGather third(*duplicate, DType::float32, shards, 2);
  first.ticket->wait();
  EXPECT_GE(Clock::now() - posted, latency);
  second.take_all();
  EXPECT_GE(Clock::now() - posted, 2 * latency);
  third.ticket->wait();
  EXPECT_GE(Clock::now() - posted, 3 * latency);
  communicator->barrier({});
  EXPECT_GE(Clock::now() - posted, 4 * latency);
}

TEST_F(Link, TakesTheTimeOfEveryCollective) {
  const auto communicator = make_slow(milliseconds(10));
  std::vector<double> data(static_cast<std::size_t>(size) + 1, rank);
  const ShardTable one_each = ShardTable::uniform(size, 1);
  const Call calls[] = {
      [](Communicator& c) { c.barrier({}); },
      [&](Communicator& c) { c.broadcast(data.data(), 8, 0, {}); },
      [&](Communicator& c) { c.all_gather(&data.back(), 8, data.data(), {}); },
      [&](Communicator& c) {
        c.gather(&data.back(), data.data(), one_each, 8, 0, {});
      },
      [&](Communicator& c) {
        c.scatter(data.data(), &data.back(), one_each, 8, 0, {});
      },
  };
  for (const Call& call : calls) {
    const auto begin = Clock::now();
    call(*communicator);
    EXPECT_GE(Clock::now() - begin, milliseconds(10));
  }
}

TEST_F(Link, DoesNotDependOnWhoLooks) {
  const auto communicator = make_slow(milliseconds(1));
  // Short enough for MPI to bring them without help of the sender.
  const ShardTable shards = ShardTable::uniform(size, 200);
  for (int round = 0; round < 5; ++round) {
    CheckedGather gather(*communicator, DType::float32, shards, round);
    CheckedReduction reduction(*communicator, DType::float32, shards,
                               {1 << 20, 1}, round);
    // All deadlines pass meanwhile, and nobody polls.
    std::this_thread::sleep_for(milliseconds(5));
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_TRUE(gather.ticket->test() || gather.ticket->test() || round == 0);
    EXPECT_TRUE(reduction.ticket->test() || reduction.ticket->test() ||
                round == 0)
        << "but for the first time, when MPI makes its connections";
    gather.ticket->wait();
    gather.check();
    reduction.take_all();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

using Sources = SimulatedLinkTest;

TEST_F(Sources, OfAGatherMustStay) {
  const auto communicator = make_slow(milliseconds(2));
  const ShardTable shards = ShardTable::uniform(size, 100);
  for (const bool by_test : {true, false}) {
    CheckedGather gather(*communicator, DType::float32, shards, 6);
    auto* own =
        static_cast<float*>(gather.bucket.get()) + shards.range(rank).begin;
    own[99] += 1;
    const std::string message = message_of<Error>([&] {
      if (!by_test) gather.ticket->wait();
      while (!gather.ticket->test()) std::this_thread::yield();
    });
    expect_part(message, "all-gather of bucket 6 (on rank " +
                             std::to_string(rank) +
                             "): its source was written to");
    // What was sent is what it was.
    own[99] -= 1;
    gather.check();
    EXPECT_TRUE(gather.ticket->test());
  }
  communicator->barrier({});
}

TEST_F(Sources, OfAReductionMustStayButForTheOwnShard) {
  const auto communicator = make_slow(milliseconds(2));
  const ShardTable shards = ShardTable::uniform(size, 100);
  const auto write_to = [&](int peer) {
    CheckedReduction reduction(*communicator, DType::float32, shards,
                               {1 << 20, 1}, 4);
    EXPECT_NE(reduction.ticket->next(), nullptr);
    static_cast<float*>(reduction.bucket.get())[shards.range(peer).begin] = 500;
    EXPECT_EQ(reduction.ticket->next(), nullptr);
    reduction.ticket->wait();
  };
  write_to(rank);
  if (size > 1) {
    const std::string message =
        message_of<Error>([&] { write_to((rank + 1) % size); });
    expect_part(message, "reduce of bucket 4 (on rank ");
    expect_part(message, "was written to while it was being sent");
  }
  communicator->barrier({});
}

TEST_F(SimulatedLinkTest, AllocatesNothingInASteadyState) {
  const auto communicator = make_slow(nanoseconds(1000));
  const ShardTable shards = ShardTable::uniform(size, 1000);
  std::vector<float> data(static_cast<std::size_t>(shards.total()));
  double norm[2] = {1, 2};
  const auto step = [&] {
    ReduceArguments reduce;
    reduce.bucket = data.data();
    reduce.shards = shards;
    reduce.piece_bytes = 2000;
    GatherArguments gather;
    gather.bucket = data.data();
    gather.shards = shards;
    ReductionTicket first = communicator->start_reduce(reduce);
    ReductionTicket second = communicator->start_reduce(reduce);
    communicator->all_reduce_sum(std::span(norm), {"norm"});
    for (ReductionTicket* ticket : {&first, &second}) {
      while ((*ticket)->next() != nullptr) {
      }
      (*ticket)->wait();
      ticket->reset();
    }
    const Ticket third = communicator->start_all_gather(gather);
    third->wait();
    communicator->barrier({});
  };
  step();
  step();
  const std::int64_t staging = communicator->staging_bytes();
  EXPECT_EQ(allocations_of(step), 0);
  EXPECT_EQ(communicator->staging_bytes(), staging);
  EXPECT_GE(staging, shards.total() * 4) << "the shadow of the gather";
}

class MissingRankOnALink : public SimulatedLinkTest {
 protected:
  void SetUp() override {
    if (size == 1) GTEST_SKIP() << "for more than one rank";
  }

  /// Rank 1 does not make the call.
  void expect_missing(const Call& call, const std::string& name) {
    const auto communicator = make_simulated_communicator(
        make_communicator(MPI_COMM_WORLD, {Backend::mpi, milliseconds(400)}),
        {nanoseconds(1000), 1e9});
    const OwnComm own;
    if (rank != 1) {
      const std::string message =
          message_of<CommunicationError>([&] { call(*communicator); });
      expect_part(message, name);
      expect_part(message,
                  "timed out after 0.4 s on rank " + std::to_string(rank));
      expect_unusable(*communicator, "timed out");
    }
    meet(own);
  }
};

TEST_F(MissingRankOnALink, IsFound) {
  const ShardTable shards = ShardTable::uniform(size, 1000);
  const ShardTable nothing = ShardTable::uniform(size, 0);
  const auto reduce = [](const ShardTable& table) {
    return [&table](Communicator& c) {
      CheckedReduction(c, DType::float32, table, {1 << 20, 1}, 2)
          .ticket->next();
    };
  };
  expect_missing(reduce(shards), "reduce of bucket 2");
  expect_missing(reduce(nothing), "reduce of bucket 2");
  expect_missing(
      [&](Communicator& c) {
        CheckedGather(c, DType::float32, shards, 5).ticket->wait();
      },
      "all-gather of bucket 5");
  expect_missing([](Communicator& c) { c.barrier({"end of epoch"}); },
                 "end of epoch");
}

}  // namespace
}  // namespace kzero::test
