// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which parameters that are kept when unmarked some rank has a gradient for.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <memory>
#include <span>
#include <vector>

#include "optim/marks.hpp"

namespace kzero::detail {

/// An exchange a step, where there are such parameters. The ranks of a
/// model-parallel group must not differ in what they keep, where several of
/// them hold it.
class KeptExchange {
 public:
  KeptExchange() = default;
  /// Collective. model_parallel may be null.
  KeptExchange(Communicator& communicator, Communicator* model_parallel,
               const Marks& marks);

  /// Sends this rank's marks.
  void start(const Marks& marks);

  /// Waits for everyone's at the first call of a step, and tells the marks what
  /// is kept.
  void finish(Marks& marks);

 private:
  std::span<std::uint64_t> of_rank(int rank) const;
  void exchange_over_model(const Marks& marks);

  Communicator* communicator_ = nullptr;
  Communicator* model_parallel_ = nullptr;
  std::int64_t words_ = 0;
  // The communicator's memory, since peers write it.
  std::shared_ptr<void> exchange_;
  // Shared bits: this rank's, and all of the model-parallel group's.
  std::vector<std::uint64_t> column_;
  std::vector<std::uint64_t> columns_;
  std::vector<std::uint64_t> bits_;
  Ticket ticket_;
  bool pending_ = false;
};

}  // namespace kzero::detail
