// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Trust ratios (LAMB) of whole parameters, whose pieces lie on several ranks.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/rule.hpp>
#include <span>
#include <vector>

#include "kernels/prepared_step.hpp"
#include "optim/model_group.hpp"
#include "optim/tile_table.hpp"

namespace kzero::detail {

class TrustRatios {
 public:
  TrustRatios() = default;
  /// Collective over the model-parallel group, which may be null. rule_of: for
  /// each parameter; null for one that is not trained. All outlive it.
  TrustRatios(std::span<const Rule* const> rule_of, const TileTable& tiles,
              const ModelGroup& model, Communicator* model_parallel);

  /// The pieces have changed. Local.
  void take_pieces();

  /// Whether a rank of the model has any, so that exchange() is due.
  bool any() const { return any_; }

  /// The sums of a piece: written by the update's first part, at any time in
  /// any thread.
  TrustSums& of_piece(std::int64_t piece) {
    return sums_[static_cast<std::size_t>(piece)];
  }

  /// Collective. Adds the pieces up: in order on this rank, then over the
  /// ranks, and over the model-parallel group for what is split there.
  void exchange(Communicator& communicator);

  /// The ratio that exchange() has found.
  double of_parameter(std::int64_t parameter) const {
    return ratios_[static_cast<std::size_t>(
        place_[static_cast<std::size_t>(parameter)])];
  }

 private:
  const TileTable* tiles_ = nullptr;
  const ModelGroup* model_ = nullptr;
  Communicator* model_parallel_ = nullptr;
  bool any_ = false;
  std::vector<std::int64_t> place_;       // by parameter; -1: has no ratio
  std::vector<std::int64_t> parameters_;  // those that have one
  std::vector<const Rule*> rules_;        // theirs
  std::vector<double> ratios_;            // theirs
  std::vector<TrustSums> sums_;           // by piece
  std::vector<double> totals_;            // two for each that has one
  std::vector<double> split_totals_;      // two for each split one
};

}  // namespace kzero::detail
