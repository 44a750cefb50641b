// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The backend for ranks that share nodes: buckets lie in memory that all ranks
// of a node can read. Where there is one node, reductions, gathers and small
// collectives call no MPI; where there are several, messages go between them.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <string>

#include "comm/mpi_communicator.hpp"
#include "comm/node_group.hpp"

namespace kzero::detail {

struct NodeState;

class NodeCommunicator final : public Communicator {
 public:
  /// Over the ranks of the given communicator, whose nodes' seats have been
  /// taken. choice is what describe() adds.
  NodeCommunicator(std::shared_ptr<MpiCommunicator> messages, NodeGroup group,
                   std::string choice);
  ~NodeCommunicator() override;

  int rank() const override;
  int size() const override;
  std::chrono::milliseconds timeout() const override;
  std::string describe() const override;
  std::shared_ptr<Communicator> duplicate() override;
  bool concurrent() const override;
  std::shared_ptr<void> allocate(std::int64_t bytes) override;
  std::shared_ptr<void> allocate_common(std::int64_t bytes) override;
  Sharing sharing() const override;
  std::int64_t staging_bytes() const override;
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
                   std::shared_ptr<MpiCommunicator> messages);

  std::string choice_;
  std::shared_ptr<NodeState> state_;  // kept by operations under way as well
};

}  // namespace kzero::detail
