// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "comm/backends.hpp"
#include "comm/checked_operations.hpp"

namespace kzero::test {
namespace {

class AllGather : public OverBackends {};

TEST_P(AllGather, BringsEveryShardToEveryRank) {
  int index = 0;
  for (const Shards& shards : shard_tables(size)) {
    for (const DType dtype : all_dtypes) {
      SCOPED_TRACE(testing::Message()
                   << "gather " << index << ", " << to_string(dtype));
      CheckedGather gather(*communicator, dtype, shards.table(), index++);
      gather.ticket->wait();
      gather.check();
    }
  }
}

TEST_P(AllGather, SeveralAreUnderWayAndEndInAnyOrder) {
  const std::vector<Shards> tables = shard_tables(size);
  std::vector<CheckedGather> gathers;
  gathers.reserve(tables.size());
  int index = 0;
  for (const Shards& shards : tables) {
    gathers.emplace_back(*communicator, DType::float32, shards.table(),
                         index++);
  }
  for (auto gather = gathers.rbegin(); gather != gathers.rend(); ++gather) {
    gather->ticket->wait();
    gather->check();
  }
}

TEST_P(AllGather, AdvancesWithoutWaiting) {
  CheckedGather gather(*communicator, DType::float64,
                       ShardTable::uniform(size, 1000), 3);
  while (!gather.ticket->test()) std::this_thread::yield();
  gather.check();
  gather.ticket->wait();
}

TEST_P(AllGather, TicketMayOutliveTheCommunicator) {
  CheckedGather gather(*communicator, DType::float32,
                       ShardTable::uniform(size, 10), 0);
  communicator.reset();
  gather.ticket->wait();
  gather.check();
}

OVER_ALL_BACKENDS(AllGather);

}  // namespace
}  // namespace kzero::test
