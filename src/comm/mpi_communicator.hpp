// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The backend on messages between pairs of ranks. Every wait then knows which
// rank is missing, and calls that differ between ranks do not match.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "comm/mpi_link.hpp"

namespace kzero::detail {

struct MpiState;

class MpiCommunicator final : public Communicator {
 public:
  /// Takes a duplicate over; backend is what the ranks will go on with, and
  /// choice what describe() adds. Collective: throws InvalidArgument on every
  /// rank when message_bytes or backends differ, or when any rank has a problem
  /// with its arguments.
  MpiCommunicator(MPI_Comm duplicate, const CommunicatorOptions& options,
                  Backend backend, std::string choice,
                  const std::string& problem);
  /// Takes a duplicate of the original's over, which says nothing new.
  MpiCommunicator(MPI_Comm duplicate, const MpiCommunicator& original);
  ~MpiCommunicator() override;

  /// What describe() adds from now on.
  void say(std::string choice) { choice_ = std::move(choice); }

  /// What its messages go by.
  MpiLink& link();

  int rank() const override;
  int size() const override;
  std::chrono::milliseconds timeout() const override;
  std::string describe() const override;
  std::shared_ptr<Communicator> duplicate() override;
  bool concurrent() const override { return concurrent_; }
  std::shared_ptr<void> allocate(std::int64_t bytes) override;
  std::int64_t staging_bytes() const override;
  std::int64_t bytes_sent() const override;
  ReductionTicket start_reduce(const ReduceArguments& arguments) override;
  Ticket start_all_gather(const GatherArguments& arguments) override;
  void all_gather(const void* send, std::int64_t bytes, void* receive,
                  Subject subject) override;
  void broadcast(void* data, std::int64_t bytes, int root,
                 Subject subject) override;
  /// Collective, to some ranks: ascending, with root among them.
  void broadcast(void* data, std::int64_t bytes, int root, Subject subject,
                 std::span<const int> ranks);
  void gather(const void* send, void* receive, const ShardTable& shards,
              std::int64_t element_bytes, int root, Subject subject) override;
  void scatter(const void* send, void* receive, const ShardTable& shards,
               std::int64_t element_bytes, int root, Subject subject) override;
  void barrier(Subject subject) override;

 private:
  void agree(std::int64_t message_bytes, Backend backend,
             const std::string& problem);

  std::string choice_;
  bool concurrent_;
  std::shared_ptr<MpiState> state_;  // kept by operations under way as well
};

}  // namespace kzero::detail
