// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reductions and gathers inside a node. A reduction hands out where this
// rank's shard lies in its peers' buckets; a gather copies their shards out of
// theirs.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

#include "comm/node_traffic.hpp"

namespace kzero::detail {

class NodeReduction final : public PendingReduction, public NodeOperation {
 public:
  explicit NodeReduction(NodeTraffic& traffic,
                         std::vector<NodeReduction*>& started)
      : NodeOperation(traffic), started_(started) {
    started_.reserve(started_.capacity() + 1);
  }

  void start(const ReduceArguments& arguments, int rank,
             std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  const Contributions* next() override;
  bool test() override;
  void wait() override;
  void release() noexcept override;

 private:
  void advance() override {}
  bool lacks(int) const override { return false; }
  bool have_all_come();
  void set_parts();

  std::vector<NodeReduction*>& started_;  // and not taken, in order
  std::int64_t element_bytes_ = 0;
  std::vector<Contribution> parts_;
  Contributions contributions_;
  bool given_ = false;
  bool taken_ = true;
  bool ended_ = true;
  std::shared_ptr<void> owner_;
};

class NodeAllGather final : public PendingOperation, public NodeOperation {
 public:
  explicit NodeAllGather(NodeTraffic& traffic) : NodeOperation(traffic) {}

  void start(const GatherArguments& arguments, int rank,
             std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  bool test() override;
  void wait() override;
  void leave() override;
  void release() noexcept override;

 private:
  void advance() override;
  bool lacks(int peer) const override;
  void end();

  std::byte* bucket_ = nullptr;
  std::int64_t element_bytes_ = 0;
  std::vector<std::uint8_t> copied_;  // by peer
  int left_ = 0;                      // peers that are not
  bool leaving_ = false;
  bool is_done_here_ = false;
  bool ended_ = true;
  std::shared_ptr<void> owner_;
};

}  // namespace kzero::detail
