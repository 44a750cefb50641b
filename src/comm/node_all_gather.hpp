// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A gather among ranks that share memory: each copies its peers' shards out of
// their buckets, and with them what has come there from other nodes.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

#include "comm/mpi_messages.hpp"
#include "comm/node_routes.hpp"
#include "comm/node_traffic.hpp"

namespace kzero::detail {

class NodeAllGather final : public PendingOperation, public NodeOperation {
 public:
  /// between: null where there is one node.
  NodeAllGather(NodeTraffic& traffic, BetweenNodes* between, MpiLink& link)
      : NodeOperation(traffic), between_(between), messages_(link) {}

  void start(const GatherArguments& arguments, int rank,
             std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  bool test() override;
  void wait() override;
  void leave() override;
  void release() noexcept override;

 private:
  /// What of a peer's bucket is not copied yet.
  enum class Left : std::uint8_t { all, arriving, nothing };

  void advance() override;
  void begin_messages(const GatherArguments& arguments, int rank);
  void take_arrived();
  void copy_from(int peer);
  void copy(const std::byte* from, int rank);
  void end();

  BetweenNodes* between_;
  MessageSet messages_;
  bool has_arrived_ = true;
  std::byte* bucket_ = nullptr;
  std::int64_t element_bytes_ = 0;
  std::vector<Left> left_;  // by peer
  int incomplete_ = 0;      // peers with something left
  bool leaving_ = false;
  bool is_done_here_ = false;
  bool ended_ = true;
  std::shared_ptr<void> owner_;
};

}  // namespace kzero::detail
