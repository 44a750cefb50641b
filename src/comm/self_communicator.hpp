// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The backend for one rank. Calls no function of MPI.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <string>

#include "comm/health.hpp"

namespace kzero::detail {

struct SelfState;

class SelfCommunicator final : public Communicator {
 public:
  /// choice is what describe() adds.
  SelfCommunicator(std::chrono::milliseconds timeout, std::string choice,
                   std::shared_ptr<Health> health = std::make_shared<Health>());
  ~SelfCommunicator() override;

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::chrono::milliseconds timeout() const override { return timeout_; }
  std::string describe() const override;
  std::shared_ptr<Communicator> duplicate() override;
  bool concurrent() const override { return true; }
  std::shared_ptr<void> allocate(std::int64_t bytes) override;
  std::int64_t staging_bytes() const override { return 0; }
  std::int64_t bytes_sent() const override { return 0; }
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
  std::chrono::milliseconds timeout_;
  std::string choice_;
  std::shared_ptr<SelfState> state_;  // kept by operations under way as well
};

}  // namespace kzero::detail
