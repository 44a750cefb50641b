// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Whether all ranks have the same hyperparameters in a step. Known before
// anything is added up, so that a step that ends here has changed nothing.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <memory>

namespace kzero::detail {

class RulesAgreement {
 public:
  RulesAgreement() = default;
  /// communicator: where reductions go out, which this comes before.
  /// model_parallel may be null; nothing else may use it between start() and
  /// clear().
  RulesAgreement(std::shared_ptr<Communicator> communicator,
                 std::shared_ptr<Communicator> model_parallel);

  /// Sends this rank's, unless that is done already.
  void start(std::uint64_t rules_hash);

  /// Whether every rank has the same, if that is known without a wait, and if
  /// so whether it is true.
  bool known();
  bool agreed() const { return differing_column_ < 0; }

  /// Waits until it is known.
  void wait();

  /// A new step, or another try.
  void clear() { stage_ = Stage::none; }

  /// When not agreed: whether ranks of this rank's own communicator differ, and
  /// the rank in the model-parallel group (0 without one) where ranks do.
  bool differs_here() const { return differs_here_; }
  int differing_column() const { return differing_column_; }

 private:
  enum class Stage { none, here, model, known };
  void end_stage();

  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Communicator> model_parallel_;
  // The communicators' memory, since peers write it: a hash a rank, and whether
  // ranks differ, a rank of the model-parallel group.
  std::shared_ptr<void> hashes_;
  std::shared_ptr<void> columns_;
  Ticket ticket_;
  Stage stage_ = Stage::none;
  bool differs_here_ = false;
  int differing_column_ = -1;  // -1: all agree
};

}  // namespace kzero::detail
