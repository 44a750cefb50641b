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
#include "comm/failures.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

constexpr std::chrono::milliseconds bound(500);

struct Sharing {
  Backend backend;
  Nodes nodes = Nodes::all;
};

std::shared_ptr<Communicator> make_impatient(
    Sharing sharing, std::chrono::milliseconds timeout = bound) {
  CommunicatorOptions options;
  options.backend = sharing.backend;
  options.timeout = timeout;
  options.node = node_of(sharing.nodes, world_rank());
  return make_communicator(MPI_COMM_WORLD, options);
}

class OverSharing : public testing::TestWithParam<Sharing> {};
class MissingRank : public OverSharing {};
class Mismatch : public OverSharing {};
class Failures : public OverSharing {};

std::string name_of_sharing(const testing::TestParamInfo<Sharing>& info) {
  if (info.param.backend == Backend::mpi) return "mpi";
  return info.param.nodes == Nodes::all ? "node" : "nodes_of_two";
}

#define OVER_SHARING(fixture)                                        \
  INSTANTIATE_TEST_SUITE_P(                                          \
      Backends, fixture,                                             \
      testing::Values(Sharing{Backend::mpi}, Sharing{Backend::node}, \
                      Sharing{Backend::node, Nodes::of_two}),        \
      name_of_sharing)
OVER_SHARING(MissingRank);
OVER_SHARING(Mismatch);
OVER_SHARING(Failures);

enum class Waiting { all, rank_0 };

// Whether rank 0 hears from rank 1 itself, or through other ranks.
enum class Rank0 { knows, guesses };

/// Rank 1 does not make the call; every rank that waits must say so.
void expect_rank_1_missing(Sharing sharing, const Call& call,
                           const std::string& name,
                           Waiting waiting = Waiting::all,
                           Rank0 knows = Rank0::knows) {
  const auto communicator = make_impatient(sharing);
  const OwnComm own;
  if (world_rank() != 1) {
    const std::string message =
        message_of<CommunicationError>([&] { call(*communicator); });
    // Between nodes a peer can be the first to give up.
    const bool is_told =
        sharing.nodes != Nodes::all &&
        message.find("has given the communicator up") != std::string::npos;
    if (!is_told && (waiting == Waiting::all || world_rank() == 0)) {
      expect_part(message, name + " timed out after 0.5 s on rank " +
                               std::to_string(world_rank()) +
                               ": no answer from rank");
      expect_part(message, "does every rank make the same calls?");
      expect_unusable(*communicator, name + " timed out");
    }
    if (!is_told && world_rank() == 0 && knows == Rank0::knows) {
      expect_part(message, "no answer from rank 1 (1 of ");
    }
  }
  meet(own);
}

const ShardTable one_each() { return ShardTable::uniform(world_size(), 1); }

TEST_P(MissingRank, InABarrier) {
  expect_rank_1_missing(
      GetParam(), [](Communicator& c) { c.barrier({"end of epoch"}); },
      "end of epoch", Waiting::all,
      world_size() == 2 ? Rank0::knows : Rank0::guesses);
}

TEST_P(MissingRank, InAnAllGather) {
  expect_rank_1_missing(
      GetParam(),
      [](Communicator& c) {
        std::vector<int> all(static_cast<std::size_t>(c.size()));
        const int own = 3;
        c.all_gather(&own, sizeof(own), all.data(), {"handshake"});
      },
      "handshake");
}

TEST_P(MissingRank, AsRootOfABroadcast) {
  expect_rank_1_missing(
      GetParam(),
      [](Communicator& c) {
        double value = 0;
        c.broadcast(&value, sizeof(value), 1, {"step"});
      },
      "step", Waiting::all, world_size() == 2 ? Rank0::knows : Rank0::guesses);
}

TEST_P(MissingRank, AsRootOfAScatter) {
  expect_rank_1_missing(
      GetParam(),
      [](Communicator& c) {
        double value = 0;
        c.scatter(nullptr, &value, one_each(), sizeof(value), 1, {"state"});
      },
      "state");
}

TEST_P(MissingRank, InAGather) {
  expect_rank_1_missing(
      GetParam(),
      [](Communicator& c) {
        std::vector<double> all(static_cast<std::size_t>(c.size()));
        const double value = 1;
        c.gather(&value, all.data(), one_each(), sizeof(value), 0, {"state"});
      },
      "state", Waiting::rank_0);
}

TEST_P(MissingRank, InAReduction) {
  expect_rank_1_missing(
      GetParam(),
      [](Communicator& c) {
        CheckedReduction reduction(c, DType::float32,
                                   ShardTable::uniform(c.size(), 1000),
                                   {1 << 20, 1}, 2);
        reduction.ticket->next();
      },
      "reduce of bucket 2");
}

TEST_P(MissingRank, InAGatherOfABucket) {
  expect_rank_1_missing(
      GetParam(),
      [](Communicator& c) {
        CheckedGather gather(c, DType::float32,
                             ShardTable::uniform(c.size(), 1000), 5);
        gather.ticket->wait();
      },
      "all-gather of bucket 5");
}

TEST_P(MissingRank, InOneOfSeveralReductions) {
  const auto communicator = make_impatient(GetParam());
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
    // Another node's sums come from one of its ranks, which may be rank 0.
    expect_part(message, GetParam().nodes == Nodes::all || world_rank() == 0
                             ? "no answer from rank 1 ("
                             : "no answer from rank ");
    EXPECT_THROW(second.ticket->test(), CommunicationError);
    EXPECT_THROW(first.ticket->next(), CommunicationError);
  } else {
    first.take_all();
  }
  meet(own);
}

/// Both calls are made, on rank 0 and on the others; no rank may succeed.
void expect_mismatch(Sharing sharing, const Call& on_rank_0,
                     const Call& on_others) {
  const auto communicator = make_impatient(sharing);
  const OwnComm own;
  const Call& call = world_rank() == 0 ? on_rank_0 : on_others;
  const std::string message =
      message_of<CommunicationError>([&] { call(*communicator); });
  expect_part(message, "on rank " + std::to_string(world_rank()));
  expect_unusable(*communicator, message);
  meet(own);
}

TEST_P(Mismatch, BarrierAgainstBroadcast) {
  std::int64_t value = world_rank();
  expect_mismatch(
      GetParam(), [](Communicator& c) { c.barrier({}); },
      [&](Communicator& c) { c.broadcast(&value, sizeof(value), 0, {}); });
  EXPECT_EQ(value, world_rank()) << "garbage was received";
}

TEST_P(Mismatch, ReductionAgainstGatherOfTheSameBucket) {
  const ShardTable shards = ShardTable::uniform(world_size(), 8);
  expect_mismatch(
      GetParam(),
      [&](Communicator& c) {
        CheckedReduction(c, DType::float32, shards, {1 << 20, 1}, 0)
            .ticket->next();
      },
      [&](Communicator& c) {
        CheckedGather(c, DType::float32, shards, 0).ticket->wait();
      });
}

TEST_P(Mismatch, OfTheBucket) {
  const ShardTable shards = ShardTable::uniform(world_size(), 8);
  const auto gather = [&](int bucket) {
    return [&shards, bucket](Communicator& c) {
      CheckedGather(c, DType::float32, shards, bucket).ticket->wait();
    };
  };
  expect_mismatch(GetParam(), gather(0), gather(1));
}

TEST_P(Mismatch, OneCallMore) {
  // The others' barrier is rank 0's second one.
  expect_mismatch(
      GetParam(),
      [](Communicator& c) {
        std::int64_t value = 0;
        c.broadcast(&value, sizeof(value), 0, {});
        c.barrier({});
      },
      [](Communicator& c) { c.barrier({}); });
}

TEST_P(Mismatch, OfTheSize) {
  for (const std::int64_t more : {8, 100'000}) {
    const auto gather = [](std::int64_t bytes) {
      return [bytes](Communicator& c) {
        const auto count = static_cast<std::size_t>(bytes);
        const std::vector<char> own(count);
        std::vector<char> all(count * static_cast<std::size_t>(c.size()));
        c.all_gather(own.data(), bytes, all.data(), {"names"});
      };
    };
    expect_mismatch(GetParam(), gather(8), gather(8 + more));
    expect_mismatch(GetParam(), gather(8 + more), gather(8));
  }
}

TEST_P(Mismatch, OfTheShards) {
  const auto gather = [](std::int64_t shard) {
    return [shard](Communicator& c) {
      CheckedGather(c, DType::float32, ShardTable::uniform(c.size(), shard), 4)
          .ticket->wait();
    };
  };
  expect_mismatch(GetParam(), gather(100), gather(104));
}

TEST(MismatchOfMessages, IsExplained) {
  const auto communicator = make_impatient({Backend::mpi});
  const OwnComm own;
  std::vector<char> data(64);
  const auto gather_of = [&](std::int64_t shard) {
    const ShardTable shards = ShardTable::uniform(world_size(), shard);
    communicator->gather(data.data(), data.data(), shards, 1, 0, {"state"});
  };
  if (world_rank() == 0) {
    meet(own);
    const std::string message =
        message_of<CommunicationError>([&] { gather_of(8); });
    expect_part(message, "rank 1 sent 5 bytes, expected 8");
  } else {
    gather_of(world_rank() == 1 ? 5 : 8);
    meet(own);
  }
  meet(own);

  const auto other = make_impatient({Backend::mpi});
  if (world_rank() == 1) other->gather(&data[0], nullptr, one_each(), 1, 0, {});
  meet(own);
  if (world_rank() == 0) {
    const std::string message = message_of<CommunicationError>(
        [&] { other->all_gather(&data[0], 1, &data[1], {"names"}); });
    expect_part(message, "rank 1 sent 1 byte for a gather");
    expect_part(message, "here it is an all-gather");
  }
  meet(own);
}

TEST_P(Failures, LeaveOtherCommunicatorsAlone) {
  const auto good = make_impatient(GetParam(), std::chrono::seconds(30));
  {
    const auto bad = make_impatient(GetParam());
    const OwnComm own;
    if (world_rank() == 0) {
      EXPECT_THROW(bad->barrier({}), CommunicationError);
    }
    meet(own);
  }
  CheckedReduction reduction(*good, DType::float32,
                             ShardTable::uniform(world_size(), 100), {64, 1},
                             0);
  reduction.take_all();
}

}  // namespace
}  // namespace kzero::test
