// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A ticket that is dropped before its end makes the communicator unusable.
#include <gtest/gtest.h>

#include <memory>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"
#include "comm/failures.hpp"

namespace kzero::test {
namespace {

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
