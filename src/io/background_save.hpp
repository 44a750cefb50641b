// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A checkpoint that a thread of each rank writes from a copy, while the
// training goes on.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/new_checkpoint.hpp"
#include "optim/pending_call.hpp"

namespace kzero::detail {

class BackgroundSave final : public PendingCall {
 public:
  /// Collective. Copies what this rank owns, and begins to write; or, where the
  /// ranks cannot write by themselves, has saved it when it returns.
  BackgroundSave(ShardedOptimizer& optimizer, const std::filesystem::path& path,
                 const CheckpointOptions& options);
  /// Waits for its thread, and for no rank.
  ~BackgroundSave() override;

  bool is_over() const override { return is_over_.load(); }
  void advance() override;
  void end() override;

  /// Why it has failed, when it is over.
  std::string error() const { return is_over() ? error_ : std::string(); }

 private:
  /// A piece of an array in the copy.
  struct Piece {
    ArrayIndex index;
    std::int64_t place = 0;   // in the array
    std::int64_t offset = 0;  // in the copy
    std::int64_t bytes = 0;
  };

  void copy(ShardedOptimizer& optimizer);
  void write() noexcept;
  void finish();

  NewCheckpoint file_;
  std::vector<Piece> pieces_;
  std::shared_ptr<std::byte> memory_;
  std::int64_t memory_bytes_ = 0;
  std::thread thread_;
  std::atomic<bool> is_written_ = false;
  PartialSums sums_;
  std::string problem_;  // of this rank
  std::string error_;    // of all
  std::atomic<bool> is_over_ = false;
};

/// Local. Whether one of this optimizer is not over.
bool is_saving(ShardedOptimizer& optimizer);

/// Collective. Likewise; MPI_Finalize ends what is not over then.
std::shared_ptr<BackgroundSave> start_saving(ShardedOptimizer& optimizer,
                                             const std::filesystem::path& path,
                                             const CheckpointOptions& options);

}  // namespace kzero::detail
