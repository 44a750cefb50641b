// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What tests of failures expect of errors and of what comes after them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "comm/backends.hpp"

namespace kzero::test {

using Call = std::function<void(Communicator&)>;

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "expected: " << part << ", got: " << text;
}

/// Every later call is refused at once, with the first reason.
inline void expect_unusable(Communicator& communicator,
                            const std::string& reason) {
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
      [](Communicator& c) { c.duplicate(); },
  };
  for (const Call& call : calls) {
    const std::string message =
        message_of<CommunicationError>([&] { call(communicator); });
    expect_part(message, "refused (the communicator is unusable");
    expect_part(message, reason);
  }
}

}  // namespace kzero::test
