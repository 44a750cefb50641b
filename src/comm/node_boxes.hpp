// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Small collectives of a node: every rank fills a box, and reads those of the
// others.
#pragma once

#include <cstdint>

#include "comm/node_traffic.hpp"

namespace kzero::detail {

class NodeBoxes {
 public:
  explicit NodeBoxes(NodeTraffic& traffic) : traffic_(traffic) {}

  /// bytes from each rank, in the order of the node, to each.
  void all_gather(const void* send, std::int64_t bytes, void* receive,
                  const Subject& subject);
  void barrier(const Subject& subject);

 private:
  /// One box of each rank: count bytes of a call of so many in all.
  void exchange(const NodeRecord& record, const std::byte* send,
                std::int64_t count, std::byte* receive, std::int64_t stride,
                const Subject& subject);

  NodeTraffic& traffic_;
  std::uint64_t filled_ = 0;
};

}  // namespace kzero::detail
