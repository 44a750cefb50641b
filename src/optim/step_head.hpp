// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What ranks tell each other at the head of a step, beside the first bucket:
// the hash of their hyperparameters, and which parameters they have gradients
// for where that matters.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <memory>
#include <span>
#include <vector>

#include "optim/marks.hpp"

namespace kzero::detail {

class StepHead {
 public:
  StepHead() = default;
  /// Collective. model_parallel may be null.
  StepHead(Communicator& communicator, Communicator* model_parallel,
           const Marks& marks);

  /// Sends this rank's.
  void start(std::uint64_t rules_hash, const Marks& marks);

  /// Waits for everyone's at the first call of a step, and tells the marks
  /// what is kept. True when every rank has the same hyperparameters.
  bool agreed(Marks& marks);

  /// When not agreed: whether ranks of this rank's own communicator differ, and
  /// the rank in the model-parallel group (0 without one) where ranks do.
  bool differs_here() const { return differs_here_; }
  int differing_column() const { return differing_column_; }

 private:
  std::span<std::uint64_t> of_rank(int rank) const;
  void exchange_over_model(const Marks& marks);

  Communicator* communicator_ = nullptr;
  Communicator* model_parallel_ = nullptr;
  std::int64_t words_ = 0;
  // The communicator's memory, since peers write it.
  std::shared_ptr<void> exchange_;
  // Whether ranks differ, and shared bits; this rank's, and all of the
  // model-parallel group's.
  std::vector<std::uint64_t> column_;
  std::vector<std::uint64_t> columns_;
  std::vector<std::uint64_t> bits_;
  Ticket ticket_;
  bool known_ = false;
  bool differs_here_ = false;
  int differing_column_ = -1;  // -1: all agree
};

}  // namespace kzero::detail
