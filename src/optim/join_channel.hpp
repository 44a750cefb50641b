// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How the ranks of a join tell one another, before each step, which optimizer
// steps and who has run out.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/join.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kzero::detail {

class OptimizerCore;

/// What all ranks know of the step that comes.
struct JoinRound {
  std::int64_t optimizer = 0;  // that steps; of no meaning when none does
  int active = 0;              // ranks that step
  int first_active = 0;
  int first_done = -1;  // -1: every rank steps
};

class JoinChannel {
 public:
  /// communicator: of its own, over the members' ranks. Members outlive it.
  JoinChannel(std::shared_ptr<Communicator> communicator, JoinOptions options,
              std::vector<OptimizerCore*> members);

  const JoinOptions& options() const { return options_; }
  std::span<OptimizerCore* const> members() const { return members_; }

  /// Collective. This rank steps a member, or has run out. The members'
  /// gathers go on meanwhile. Throws InvalidArgument on every rank when one
  /// has a problem, or active ranks step different members.
  JoinRound step(std::int64_t member);
  JoinRound done(const std::string& problem);

  /// Collective, where a rank has run out: the hyperparameters of the first
  /// active one, in order.
  void share_hyperparameters(const JoinRound& round, std::span<double> values);

 private:
  JoinRound exchange(std::int64_t mine);

  std::shared_ptr<Communicator> communicator_;
  JoinOptions options_;
  std::vector<OptimizerCore*> members_;
  // The communicator's memory, since peers write it: one word a rank.
  std::shared_ptr<void> words_;
};

}  // namespace kzero::detail
