// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Wrong calls are refused by every backend, and do no harm.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <kzero/error.hpp>

#include "comm/backends.hpp"

namespace kzero::test {
namespace {

class ArgumentChecks : public OverBackends {
 protected:
  void expect_refused(const std::function<void()>& call, const char* part) {
    const std::string message = message_of<InvalidArgument>(call);
    EXPECT_NE(message.find(part), std::string::npos)
        << "expected: " << part << ", got: " << message;
    // Still usable.
    communicator->barrier({"barrier"});
  }

  ReduceArguments reduce_arguments() {
    ReduceArguments arguments;
    arguments.bucket = data.data();
    arguments.shards = ShardTable::uniform(size, 2);
    arguments.index = 3;
    return arguments;
  }

  std::array<double, 64> data{};
};

TEST_P(ArgumentChecks, OfReduce) {
  ReduceArguments arguments = reduce_arguments();
  arguments.bucket = nullptr;
  expect_refused([&] { communicator->start_reduce(arguments); },
                 "reduce of bucket 3 refused: the bucket is null");

  arguments = reduce_arguments();
  arguments.shards = ShardTable::uniform(size + 1, 2);
  expect_refused([&] { communicator->start_reduce(arguments); },
                 "the shard table is for");

  arguments = reduce_arguments();
  arguments.piece_granularity = 0;
  expect_refused([&] { communicator->start_reduce(arguments); },
                 "piece_granularity = 0");

  arguments = reduce_arguments();
  arguments.piece_bytes = -1;
  expect_refused([&] { communicator->start_reduce(arguments); },
                 "piece_bytes = -1");

  std::vector<std::int64_t> descending(static_cast<std::size_t>(size) + 1, 0);
  descending.back() = -1;
  arguments = reduce_arguments();
  arguments.shards = ShardTable(descending);
  expect_refused([&] { communicator->start_reduce(arguments); }, "must ascend");
}

TEST_P(ArgumentChecks, OfAllGather) {
  GatherArguments arguments;
  arguments.shards = ShardTable::uniform(size, 1);
  expect_refused([&] { communicator->start_all_gather(arguments); },
                 "all-gather of bucket 0 refused: the bucket is null");
  arguments.bucket = data.data();
  arguments.shards = ShardTable();
  expect_refused([&] { communicator->start_all_gather(arguments); },
                 "the shard table is for 0 ranks");
}

TEST_P(ArgumentChecks, OfSmallCollectives) {
  const ShardTable shards = ShardTable::uniform(size, 1);
  expect_refused(
      [&] {
        communicator->all_gather(data.data(), -1, data.data(), {"names"});
      },
      "names refused: a size of -1 bytes");
  expect_refused(
      [&] { communicator->all_gather(nullptr, 8, data.data(), {"names"}); },
      "buffer is null");
  expect_refused([&] { communicator->broadcast(nullptr, 8, 0, {"x"}); },
                 "buffer is null");
  for (const int root : {-1, size}) {
    expect_refused(
        [&] { communicator->broadcast(data.data(), 8, root, {"x"}); },
        "x refused: root is");
    expect_refused(
        [&] {
          communicator->gather(data.data(), data.data(), shards, 8, root,
                               {"x"});
        },
        "x refused: root is");
  }
  expect_refused(
      [&] {
        communicator->scatter(data.data(), data.data(),
                              ShardTable::uniform(size + 2, 1), 8, 0, {"x"});
      },
      "the shard table is for");
  expect_refused(
      [&] {
        communicator->scatter(data.data(), data.data(), shards, -8, 0, {"x"});
      },
      "elements of -8 bytes");
  expect_refused(
      [&] { communicator->gather(nullptr, data.data(), shards, 8, 0, {"x"}); },
      "is null");
  expect_refused([&] { communicator->allocate(-1); }, "cannot allocate -1");
}

TEST_P(ArgumentChecks, NothingAtNullIsFine) {
  communicator->all_gather(nullptr, 0, nullptr, {});
  communicator->broadcast(nullptr, 0, 0, {});
  const ShardTable empty = ShardTable::uniform(size, 0);
  communicator->gather(nullptr, nullptr, empty, 8, 0, {});
  communicator->scatter(nullptr, nullptr, empty, 8, 0, {});
  ReduceArguments reduce;
  reduce.shards = empty;
  const ReductionTicket reduction = communicator->start_reduce(reduce);
  EXPECT_THROW(reduction->wait(), InvalidArgument);
  EXPECT_EQ(reduction->next(), nullptr);
  reduction->wait();
  GatherArguments gather;
  gather.shards = empty;
  communicator->start_all_gather(gather)->wait();
  EXPECT_NE(communicator->allocate(0), nullptr);
  communicator->barrier({});
}

OVER_ALL_BACKENDS(ArgumentChecks);

}  // namespace
}  // namespace kzero::test
