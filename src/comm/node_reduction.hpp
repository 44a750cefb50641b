// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A reduction among ranks that share memory. It hands out where this rank's
// shard lies in its peers' buckets, and in staging what other nodes have sent.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

#include "comm/node_routes.hpp"
#include "comm/node_traffic.hpp"

namespace kzero::detail {

class NodeReduction final : public PendingReduction, public NodeOperation {
 public:
  /// between: null where there is one node.
  NodeReduction(NodeTraffic& traffic, BetweenNodes* between,
                std::vector<NodeReduction*>& started);

  void start(const ReduceArguments& arguments, int rank,
             std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  const Contributions* next() override;
  bool test() override;
  void wait() override;
  void release() noexcept override;

 private:
  void advance() override;
  bool have_all_come();
  void open_all();
  const Contributions* next_piece();

  BetweenNodes* between_;
  std::vector<NodeReduction*>& started_;  // and not taken, in order
  std::int64_t element_bytes_ = 0;
  const void* bucket_ = nullptr;
  std::vector<const std::byte*> buckets_;  // by the ranks of the node
  bool opened_ = false;
  std::vector<Contribution> parts_;
  Contributions contributions_;
  bool given_ = false;
  MpiReduction* sent_ = nullptr;  // where there are several nodes
  bool taken_ = true;
  bool ended_ = true;
  std::shared_ptr<void> owner_;
};

}  // namespace kzero::detail
