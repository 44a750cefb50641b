// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A communicator on a simulated link: the wrapped one does the work, the
// answers come when the link would have brought them.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <string>

#include "comm/simulated_wire.hpp"

namespace kzero::detail {

struct SimulatedState;

class SimulatedCommunicator final : public Communicator {
 public:
  SimulatedCommunicator(std::shared_ptr<Communicator> inner,
                        std::shared_ptr<SimulatedWire> wire);
  ~SimulatedCommunicator() override;

  int rank() const override;
  int size() const override;
  std::chrono::milliseconds timeout() const override;
  std::string describe() const override;
  std::shared_ptr<Communicator> duplicate() override;
  bool concurrent() const override;
  std::shared_ptr<void> allocate(std::int64_t bytes) override;
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
  Communicator& inner() const;
  /// What goes between this rank and a root that has all of the shards.
  std::int64_t bytes_with_root(const ShardTable& shards,
                               std::int64_t element_bytes, int root) const;

  std::shared_ptr<SimulatedState> state_;  // kept by operations under way too
};

}  // namespace kzero::detail
