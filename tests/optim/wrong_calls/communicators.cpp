// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Communicators that cannot be made, and wrong arguments of their calls.
#include <gtest/gtest.h>

#include <array>
#include <kzero/kzero.hpp>
#include <limits>

#include "comm/world.hpp"
#include "core/message.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

CommunicatorOptions with_timeout(milliseconds timeout) {
  return {.timeout = timeout};
}

CommunicatorOptions with_bytes(std::int64_t bytes) {
  return {.timeout = seconds(30), .message_bytes = bytes};
}

CommunicatorOptions with_backend(int code) {
  return {.backend = static_cast<Backend>(code), .timeout = seconds(30)};
}

TEST(WrongCalls, OfMakeCommunicator) {
  const auto make = [](const CommunicatorOptions& options) {
    return [=] { make_communicator(MPI_COMM_WORLD, options); };
  };
  const WrongCalls rows = {
      {"MPI_COMM_NULL",
       [] { make_communicator(MPI_COMM_NULL); },
       {"make_communicator", "MPI_COMM_NULL"},
       Found::collective},
      {"no timeout",
       make(with_timeout(milliseconds(0))),
       {"timeout", "is 0 ms"},
       Found::collective},
      {"negative timeout",
       make(with_timeout(milliseconds(-5))),
       {"timeout", "is -5 ms"},
       Found::collective},
      {"no message_bytes",
       make(with_bytes(0)),
       {"message_bytes is 0"},
       Found::collective},
      {"negative message_bytes",
       make(with_bytes(-1)),
       {"message_bytes is -1"},
       Found::collective},
      {"message_bytes that MPI cannot count",
       make(with_bytes(std::int64_t{1} << 31)),
       {"message_bytes is 2147483648"},
       Found::collective},
      {"unknown backend",
       make(with_backend(9)),
       {"Backend", "got 9"},
       Found::collective},
      {"negative backend",
       make(with_backend(-1)),
       {"Backend", "got -1"},
       Found::collective},
  };
  expect_refused(rows);
}

TEST(WrongCalls, OfMakeCommunicatorBySomeRanks) {
  const int ranks = world_size();
  if (ranks == 1) GTEST_SKIP() << "for more than one rank";
  const bool last = world_rank() == ranks - 1;
  const std::string found = detail::concat("found on rank ", ranks - 1);
  const auto make = [&](const CommunicatorOptions& of_last) {
    return [=] {
      make_communicator(MPI_COMM_WORLD,
                        last ? of_last : with_timeout(seconds(30)));
    };
  };
  const OwnComm part(world_rank() % 2, 0);
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - world_rank() % 2, 1,
                       &inter);
  const WrongCalls rows = {
      {"an intercommunicator",
       [&] { make_communicator(inter); },
       {"make_communicator", "intercommunicator"},
       Found::collective},
      {"backend self for many",
       [] { make_communicator(MPI_COMM_WORLD, {Backend::self}); },
       {"backend self", detail::concat("has ", ranks)},
       Found::collective},
      {"backend self on the last rank",
       make({Backend::self}),
       {"backend self", found},
       Found::collective},
      {"no timeout on the last rank",
       make(with_timeout(milliseconds(0))),
       {"timeout", "is 0 ms", found},
       Found::collective},
      {"no message_bytes on the last rank",
       make(with_bytes(0)),
       {"message_bytes is 0", found},
       Found::collective},
      {"another message_bytes on the last rank",
       make(with_bytes(1000)),
       {"message_bytes", detail::concat("rank ", ranks - 1, ": 1000")},
       Found::collective},
      {"unknown backend on the last rank",
       make(with_backend(7)),
       {"Backend", "got 7", found},
       Found::collective},
  };
  expect_refused(rows);
  MPI_Comm_free(&inter);
}

class WrongCommunicatorCalls : public testing::Test {
 protected:
  ReduceArguments reduce() {
    ReduceArguments arguments;
    arguments.bucket = data.data();
    arguments.shards = ShardTable::uniform(size, 2);
    arguments.index = 3;
    return arguments;
  }

  WrongCall reduce_row(const char* name,
                       std::function<void(ReduceArguments&)> f,
                       std::vector<std::string> says) {
    says.push_back("reduce of bucket 3 refused");
    return {name,
            [=, this] {
              ReduceArguments arguments = reduce();
              f(arguments);
              communicator->start_reduce(arguments);
            },
            says};
  }

  WrongCall gather_row(const char* name,
                       std::function<void(GatherArguments&)> f,
                       std::vector<std::string> says) {
    says.push_back("all-gather of bucket 5 refused");
    return {name,
            [=, this] {
              GatherArguments arguments;
              arguments.bucket = data.data();
              arguments.shards = ShardTable::uniform(size, 2);
              arguments.index = 5;
              f(arguments);
              communicator->start_all_gather(arguments);
            },
            says};
  }

  std::function<void()> on_communicator(std::function<void(Communicator&)> f) {
    return [=, this] { f(*communicator); };
  }

  /// Offsets that are 0, but for one.
  std::vector<std::int64_t> offsets(std::size_t place, std::int64_t value) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size) + 1, 0);
    all[place] = value;
    return all;
  }

  void expect_still_works() {
    std::int64_t one = 1;
    communicator->all_reduce_sum(std::span(&one, 1), {"test"});
    EXPECT_EQ(one, size);
  }

  std::shared_ptr<Communicator> communicator =
      make_communicator(MPI_COMM_WORLD, with_timeout(seconds(30)));
  const int size = communicator->size();
  std::array<double, 64> data{};
  const Subject x{"x"};
};

TEST_F(WrongCommunicatorCalls, OfReduceAndAllGather) {
  const auto descending = offsets(static_cast<std::size_t>(size), -1);
  auto shifted = offsets(0, 4);
  std::fill(shifted.begin(), shifted.end(), 4);
  const auto wild = offsets(0, std::numeric_limits<std::int64_t>::min());
  const DType unknown = static_cast<DType>(9);
  const std::string ranks = detail::concat("communicator has ", size);
  const WrongCalls rows = {
      reduce_row("no bucket", [](auto& a) { a.bucket = nullptr; },
                 {"bucket is null", detail::concat(2 * size)}),
      reduce_row("shards of too many ranks",
                 [&](auto& a) { a.shards = ShardTable::uniform(size + 1, 2); },
                 {detail::concat("for ", size + 1), ranks}),
      reduce_row("shards of no ranks", [](auto& a) { a.shards = {}; },
                 {"for 0 ranks", ranks}),
      reduce_row("shards of -1 ranks",
                 [](auto& a) {
                   a.shards = ShardTable(std::span<const std::int64_t>());
                 },
                 {"for -1 rank", ranks}),
      reduce_row("shards of negative size",
                 [&](auto& a) { a.shards = ShardTable::uniform(size, -3); },
                 {"rank 0", "[0, -3)"}),
      reduce_row(
          "shards of enormous size",
          [&](auto& a) { a.shards = ShardTable::uniform(size, highest); },
          {"rank 0", "9223372036854775807", "2^62"}),
      reduce_row("descending shards",
                 [&](auto& a) { a.shards = ShardTable(descending); },
                 {detail::concat("rank ", size - 1), "[0, -1)", "ascend"}),
      reduce_row("shards that do not start at 0",
                 [&](auto& a) { a.shards = ShardTable(shifted); },
                 {"rank 0", "[4, 4)", "from 0"}),
      reduce_row("shards that start anywhere",
                 [&](auto& a) { a.shards = ShardTable(wild); },
                 {"rank 0", "-9223372036854775808", "from 0"}),
      reduce_row("no piece_bytes", [](auto& a) { a.piece_bytes = 0; },
                 {"piece_bytes = 0"}),
      reduce_row("negative piece_granularity",
                 [](auto& a) { a.piece_granularity = -2; },
                 {"piece_granularity = -2"}),
      reduce_row("unknown type", [=](auto& a) { a.dtype = unknown; },
                 {"number type", "got 9"}),
      gather_row("no bucket", [](auto& a) { a.bucket = nullptr; },
                 {"bucket is null", detail::concat(2 * size)}),
      gather_row("shards of no ranks", [](auto& a) { a.shards = {}; },
                 {"for 0 ranks", ranks}),
      gather_row("descending shards",
                 [&](auto& a) { a.shards = ShardTable(descending); },
                 {"[0, -1)", "ascend"}),
      gather_row("unknown type", [=](auto& a) { a.dtype = unknown; },
                 {"number type", "got 9"}),
  };
  expect_refused(rows, [&] { expect_still_works(); });
}

TEST_F(WrongCommunicatorCalls, OfSmallCollectives) {
  void* const d = data.data();
  const ShardTable one = ShardTable::uniform(size, 1);
  const ShardTable other = ShardTable::uniform(size + 2, 1);
  const Subject s = x;
  const std::string size_text = detail::concat("root is ", size);
  std::int64_t number = 1;
  using C = Communicator;
  WrongCalls rows = {
      {"all_gather of -1 bytes",
       on_communicator([=](C& c) { c.all_gather(d, -1, d, s); }),
       {"x refused", "-1 bytes"}},
      {"all_gather from nowhere",
       on_communicator([=](C& c) { c.all_gather(nullptr, 8, d, s); }),
       {"x refused", "null", "8"}},
      {"all_gather to nowhere",
       on_communicator([=](C& c) { c.all_gather(d, 8, nullptr, s); }),
       {"x refused", "null", "8"}},
      {"broadcast of -7 bytes",
       on_communicator([=](C& c) { c.broadcast(d, -7, 0, s); }),
       {"x refused", "-7 bytes"}},
      {"broadcast of nothing",
       on_communicator([=](C& c) { c.broadcast(nullptr, 8, 0, s); }),
       {"x refused", "null", "8"}},
      {"broadcast from rank -1",
       on_communicator([=](C& c) { c.broadcast(d, 8, -1, s); }),
       {"x refused", "root is -1"}},
      {"broadcast from a rank past the end",
       on_communicator([=](C& c) { c.broadcast(d, 8, c.size(), s); }),
       {"x refused", size_text}},
      {"broadcast for nobody",
       on_communicator([=](C& c) { c.broadcast(d, 8, -1, {nullptr}); }),
       {"refused", "root is -1"}},
      {"gather to a rank past the end",
       on_communicator([=](C& c) { c.gather(d, d, one, 8, c.size(), s); }),
       {"x refused", size_text}},
      {"gather from nowhere",
       on_communicator([=](C& c) { c.gather(nullptr, d, one, 8, 0, s); }),
       {"x refused", "null", "8"}},
      {"gather of other ranks",
       on_communicator([=](C& c) { c.gather(d, d, other, 8, 0, s); }),
       {"x refused", detail::concat("for ", size + 2)}},
      {"gather of negative elements",
       on_communicator([=](C& c) { c.gather(d, d, one, -8, 0, s); }),
       {"x refused", "-8 bytes"}},
      {"gather of elements that overflow",
       on_communicator([=](C& c) {
         c.gather(d, d, ShardTable::uniform(c.size(), 2), highest, 0, s);
       }),
       {"x refused", "9223372036854775807 bytes"}},
      {"scatter from rank -2",
       on_communicator([=](C& c) { c.scatter(d, d, one, 8, -2, s); }),
       {"x refused", "root is -2"}},
      {"scatter to nowhere",
       on_communicator([=](C& c) { c.scatter(d, nullptr, one, 8, 0, s); }),
       {"x refused", "null", "8"}},
      {"scatter of other ranks",
       on_communicator([=](C& c) { c.scatter(d, d, other, 8, 0, s); }),
       {"x refused", detail::concat("for ", size + 2)}},
      {"an unknown extremum",
       on_communicator([&](C& c) {
         c.all_reduce(std::span(&number, 1), static_cast<Extremum>(6), s);
       }),
       {"x refused", "Extremum", "got 6"}},
      {"memory of -1 bytes",
       on_communicator([](C& c) { c.allocate(-1); }),
       {"allocate", "-1 bytes"}},
  };
  if (size > 1)
    rows.push_back(
        {"all_gather of more bytes than can be counted",
         on_communicator([=](C& c) { c.all_gather(d, highest - 1, d, s); }),
         {"x refused", "9223372036854775806 bytes"}});
  expect_refused(rows, [&] { expect_still_works(); });
}

TEST_F(WrongCommunicatorCalls, OfReductionsOutOfOrder) {
  ReduceArguments first = reduce();
  ReduceArguments second = reduce();
  second.index = 4;
  const ReductionTicket early = communicator->start_reduce(first);
  const ReductionTicket late = communicator->start_reduce(second);
  expect_refused({{"the second reduction first",
                   [&] { late->next(); },
                   {"reduce of bucket 4 refused", "reduce of bucket 3"}}});
  while (early->next() != nullptr) {
  }
  while (late->next() != nullptr) {
  }
  expect_still_works();
}

}  // namespace
}  // namespace kzero::test
