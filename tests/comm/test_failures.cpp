// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A rank that does not answer, calls that differ between ranks, and what is
// left of a communicator after that. Who fails waits for nobody: the rank that
// is missing waits on a communicator of the test's own.
#include <gtest/gtest.h>

#include <functional>
#include <kzero/error.hpp>
#include <string>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

using Call = std::function<void(Communicator&)>;

constexpr std::chrono::milliseconds bound(300);

std::shared_ptr<Communicator> make_impatient() {
  return make_communicator(MPI_COMM_WORLD, {Backend::mpi, bound});
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "expected: " << part << ", got: " << text;
}

/// Every later call is refused at once, with the first reason.
void expect_unusable(Communicator& communicator, const std::string& reason) {
  const ShardTable shards = ShardTable::uniform(communicator.size(), 1);
  std::vector<double> data(static_cast<std::size_t>(communicator.size()) + 1);
  void* const buffer = data.data();
  ReduceArguments reduce;
  reduce.bucket = buffer;
  reduce.shards = shards;
  GatherArguments gather;
  gather.bucket = buffer;
  gather.shards = shards;
  const Call calls[] = {
      [](Communicator& c) { c.barrier({"call"}); },
      [&](Communicator& c) { c.broadcast(buffer, 8, 0, {"call"}); },
      [&](Communicator& c) { c.all_gather(buffer, 8, buffer, {"call"}); },
      [&](Communicator& c) {
        c.gather(buffer, buffer, shards, 8, 0, {"call"});
      },
      [&](Communicator& c) {
        c.scatter(buffer, buffer, shards, 8, 0, {"call"});
      },
      [&](Communicator& c) { c.start_reduce(reduce); },
      [&](Communicator& c) { c.start_all_gather(gather); },
      [&](Communicator& c) { c.all_reduce_sum(std::span(data), {"call"}); },
      [](Communicator& c) { c.allocate(8); },
  };
  for (const Call& call : calls) {
    const std::string message =
        message_of<CommunicationError>([&] { call(communicator); });
    expect_part(message, "refused (the communicator is unusable");
    expect_part(message, reason);
  }
}

enum class Waiting { all, rank_0 };

// Whether rank 0 hears from rank 1 itself, or through other ranks.
enum class Rank0 { knows, guesses };

/// Rank 1 does not make the call; every rank that waits must say so.
void expect_rank_1_missing(const Call& call, const std::string& name,
                           Waiting waiting = Waiting::all,
                           Rank0 knows = Rank0::knows) {
  const auto communicator = make_impatient();
  const OwnComm own;
  if (world_rank() != 1) {
    const std::string message =
        message_of<CommunicationError>([&] { call(*communicator); });
    if (waiting == Waiting::all || world_rank() == 0) {
      expect_part(message, name + " timed out after 0.3 s on rank " +
                               std::to_string(world_rank()) +
                               ": no answer from rank");
      expect_part(message, "does every rank make the same calls?");
      expect_unusable(*communicator, name + " timed out");
    }
    if (world_rank() == 0 && knows == Rank0::knows) {
      expect_part(message, "no answer from rank 1 (1 of ");
    }
  }
  MPI_Barrier(own);
}

const ShardTable one_each() { return ShardTable::uniform(world_size(), 1); }

TEST(MissingRank, InABarrier) {
  expect_rank_1_missing([](Communicator& c) { c.barrier({"end of epoch"}); },
                        "end of epoch", Waiting::all,
                        world_size() == 2 ? Rank0::knows : Rank0::guesses);
}

TEST(MissingRank, InAnAllGather) {
  expect_rank_1_missing(
      [](Communicator& c) {
        std::vector<int> all(static_cast<std::size_t>(c.size()));
        const int own = 3;
        c.all_gather(&own, sizeof(own), all.data(), {"handshake"});
      },
      "handshake");
}

TEST(MissingRank, AsRootOfABroadcast) {
  expect_rank_1_missing(
      [](Communicator& c) {
        double value = 0;
        c.broadcast(&value, sizeof(value), 1, {"step"});
      },
      "step", Waiting::all, world_size() == 2 ? Rank0::knows : Rank0::guesses);
}

TEST(MissingRank, AsRootOfAScatter) {
  expect_rank_1_missing(
      [](Communicator& c) {
        double value = 0;
        c.scatter(nullptr, &value, one_each(), sizeof(value), 1, {"state"});
      },
      "state");
}

TEST(MissingRank, InAGather) {
  expect_rank_1_missing(
      [](Communicator& c) {
        std::vector<double> all(static_cast<std::size_t>(c.size()));
        const double value = 1;
        c.gather(&value, all.data(), one_each(), sizeof(value), 0, {"state"});
      },
      "state", Waiting::rank_0);
}

TEST(MissingRank, InAReduction) {
  expect_rank_1_missing(
      [](Communicator& c) {
        CheckedReduction reduction(c, DType::float32,
                                   ShardTable::uniform(c.size(), 1000),
                                   {1 << 20, 1}, 2);
        reduction.ticket->next();
      },
      "reduce of bucket 2");
}

TEST(MissingRank, InAGatherOfABucket) {
  expect_rank_1_missing(
      [](Communicator& c) {
        CheckedGather gather(c, DType::float32,
                             ShardTable::uniform(c.size(), 1000), 5);
        gather.ticket->wait();
      },
      "all-gather of bucket 5");
}

TEST(MissingRank, InOneOfSeveralReductions) {
  const auto communicator = make_impatient();
  const OwnComm own;
  const ShardTable shards = ShardTable::uniform(world_size(), 1000);
  CheckedReduction first(*communicator, DType::float32, shards, {64, 1}, 0);
  if (world_rank() != 1) {
    CheckedReduction second(*communicator, DType::float32, shards, {64, 1}, 1);
    first.take_all();
    const std::string message = message_of<CommunicationError>([&] {
      while (second.ticket->next() != nullptr) {
      }
    });
    expect_part(message, "reduce of bucket 1 timed out");
    expect_part(message, "no answer from rank 1 (");
    EXPECT_THROW(second.ticket->test(), CommunicationError);
    EXPECT_THROW(first.ticket->next(), CommunicationError);
  } else {
    first.take_all();
  }
  MPI_Barrier(own);
}

/// Both calls are made, on rank 0 and on the others; no rank may succeed.
void expect_mismatch(const Call& on_rank_0, const Call& on_others) {
  const auto communicator = make_impatient();
  const OwnComm own;
  const Call& call = world_rank() == 0 ? on_rank_0 : on_others;
  const std::string message =
      message_of<CommunicationError>([&] { call(*communicator); });
  expect_part(message, "on rank " + std::to_string(world_rank()));
  expect_unusable(*communicator, message);
  MPI_Barrier(own);
}

TEST(Mismatch, BarrierAgainstBroadcast) {
  std::int64_t value = world_rank();
  expect_mismatch(
      [](Communicator& c) { c.barrier({}); },
      [&](Communicator& c) { c.broadcast(&value, sizeof(value), 0, {}); });
  EXPECT_EQ(value, world_rank()) << "garbage was received";
}

TEST(Mismatch, ReductionAgainstGatherOfTheSameBucket) {
  const ShardTable shards = ShardTable::uniform(world_size(), 8);
  expect_mismatch(
      [&](Communicator& c) {
        CheckedReduction(c, DType::float32, shards, {1 << 20, 1}, 0)
            .ticket->next();
      },
      [&](Communicator& c) {
        CheckedGather(c, DType::float32, shards, 0).ticket->wait();
      });
}

TEST(Mismatch, OfTheBucket) {
  const ShardTable shards = ShardTable::uniform(world_size(), 8);
  const auto gather = [&](int bucket) {
    return [&shards, bucket](Communicator& c) {
      CheckedGather(c, DType::float32, shards, bucket).ticket->wait();
    };
  };
  expect_mismatch(gather(0), gather(1));
}

TEST(Mismatch, OneCallMore) {
  // The others' barrier is rank 0's second one.
  expect_mismatch(
      [](Communicator& c) {
        std::int64_t value = 0;
        c.broadcast(&value, sizeof(value), 0, {});
        c.barrier({});
      },
      [](Communicator& c) { c.barrier({}); });
}

TEST(Mismatch, OfTheSize) {
  for (const std::int64_t more : {8, 100'000}) {
    const auto gather = [](std::int64_t bytes) {
      return [bytes](Communicator& c) {
        const auto count = static_cast<std::size_t>(bytes);
        const std::vector<char> own(count);
        std::vector<char> all(count * static_cast<std::size_t>(c.size()));
        c.all_gather(own.data(), bytes, all.data(), {"names"});
      };
    };
    expect_mismatch(gather(8), gather(8 + more));
    expect_mismatch(gather(8 + more), gather(8));
  }
}

TEST(Mismatch, OfTheShards) {
  const auto gather = [](std::int64_t shard) {
    return [shard](Communicator& c) {
      CheckedGather(c, DType::float32, ShardTable::uniform(c.size(), shard), 4)
          .ticket->wait();
    };
  };
  expect_mismatch(gather(100), gather(104));
}

TEST(Mismatch, IsExplained) {
  const auto communicator = make_impatient();
  const OwnComm own;
  std::vector<char> data(64);
  const auto gather_of = [&](std::int64_t shard) {
    const ShardTable shards = ShardTable::uniform(world_size(), shard);
    communicator->gather(data.data(), data.data(), shards, 1, 0, {"state"});
  };
  if (world_rank() == 0) {
    MPI_Barrier(own);
    const std::string message =
        message_of<CommunicationError>([&] { gather_of(8); });
    expect_part(message, "rank 1 sent 5 bytes, expected 8");
  } else {
    gather_of(world_rank() == 1 ? 5 : 8);
    MPI_Barrier(own);
  }
  MPI_Barrier(own);

  const auto other = make_impatient();
  if (world_rank() == 1) other->gather(&data[0], nullptr, one_each(), 1, 0, {});
  MPI_Barrier(own);
  if (world_rank() == 0) {
    const std::string message = message_of<CommunicationError>(
        [&] { other->all_gather(&data[0], 1, &data[1], {"names"}); });
    expect_part(message, "rank 1 sent 1 byte for a gather");
    expect_part(message, "here it is an all-gather");
  }
  MPI_Barrier(own);
}

TEST(Failures, LeaveOtherCommunicatorsAlone) {
  const auto good = make_communicator(MPI_COMM_WORLD,
                                      {Backend::mpi, std::chrono::seconds(30)});
  {
    const auto bad = make_impatient();
    const OwnComm own;
    if (world_rank() == 0) {
      EXPECT_THROW(bad->barrier({}), CommunicationError);
    }
    MPI_Barrier(own);
  }
  CheckedReduction reduction(*good, DType::float32,
                             ShardTable::uniform(world_size(), 100), {64, 1},
                             0);
  reduction.take_all();
}

class DroppedTicket : public OverBackends {};

TEST_P(DroppedTicket, OfAReduction) {
  {
    CheckedReduction reduction(*communicator, DType::float32,
                               ShardTable::uniform(size, 1000), {64, 1}, 7);
    EXPECT_NE(reduction.ticket->next(), nullptr);
  }
  expect_unusable(*communicator, "reduce of bucket 7: dropped before its end");
}

TEST_P(DroppedTicket, OfAGather) {
  {
    const CheckedGather gather(*communicator, DType::float32,
                               ShardTable::uniform(size, 1000), 7);
  }
  expect_unusable(*communicator,
                  "all-gather of bucket 7: dropped before its end");
}

TEST_P(DroppedTicket, AfterTheEndIsFine) {
  {
    CheckedReduction reduction(*communicator, DType::float32,
                               ShardTable::uniform(size, 1000), {64, 1}, 7);
    reduction.take_all();
    const CheckedGather gather(*communicator, DType::float32,
                               ShardTable::uniform(size, 1000), 7);
    gather.ticket->wait();
  }
  communicator->barrier({});
}

TEST_P(DroppedTicket, MemoryStays) {
  std::shared_ptr<void> memory = communicator->allocate(1000 * size * 4);
  {
    GatherArguments arguments;
    arguments.bucket = memory.get();
    arguments.shards = ShardTable::uniform(size, 1000);
    const Ticket dropped = communicator->start_all_gather(arguments);
  }
  auto* const late = static_cast<char*>(memory.get());
  communicator.reset();
  memory.reset();
  late[0] = 1;  // what a late message does; a checker of memory would tell
  EXPECT_EQ(late[0], 1);
}

OVER_ALL_BACKENDS(DroppedTicket);

}  // namespace
}  // namespace kzero::test
