// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The backend for ranks that share a node: buckets lie in memory that all of
// them can read. Reductions, gathers and small collectives call no MPI.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <string>

#include "comm/node_group.hpp"

namespace kzero::detail {

struct NodeState;

class NodeCommunicator final : public Communicator {
 public:
  /// Collective over the given communicator, whose ranks are all of one node;
  /// the node's seats have been taken. choice is what describe() adds.
  NodeCommunicator(std::shared_ptr<Communicator> messages, NodeGroup group,
                   std::string choice);
  ~NodeCommunicator() override;

  int rank() const override;
  int size() const override;
  std::chrono::milliseconds timeout() const override;
  std::string describe() const override;
  std::shared_ptr<Communicator> duplicate() override;
  bool concurrent() const override;
  std::shared_ptr<void> allocate(std::int64_t bytes) override;
  std::int64_t staging_bytes() const override { return 0; }
  std::int64_t bytes_sent() const override;
  ReductionTicket start_reduce(const ReduceArguments& arguments) override;
  Ticket start_all_gather(const GatherArguments& arguments) override;
  void all_gather(const void* send, std::int64_t bytes, void* receive,
                  Subject subject) override;
  void broadcast(void* data, std::int64_t bytes, int root,
                 Subject subject) override;
  void gather(const void* send, void* receive, const ShardTable& shards,
              std::int64_t element_bytes, int root, Subject subject) override;
  void scatter(const void* send, void* receive, const ShardTable& shards,
               std::int64_t element_bytes, int root, Subject subject) override;
  void barrier(Subject subject) override;

 private:
  NodeCommunicator(const NodeCommunicator& original, NodeGroup group,
                   std::shared_ptr<Communicator> messages);

  std::string choice_;
  std::shared_ptr<NodeState> state_;  // kept by operations under way as well
};

}  // namespace kzero::detail
