// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a step adds up over tiles, ranks and the model-parallel group.
#pragma once

#include <compare>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <limits>
#include <span>

#include "kernels/kernels.hpp"

namespace kzero::detail {

/// Whose gradient was not finite; the smallest of several is reported. Plain
/// numbers: it travels between ranks.
struct Culprit {
  static constexpr std::int64_t nobody =
      std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t only_the_sum = nobody - 1;

  std::int64_t rank = nobody;
  std::int64_t model_parallel_rank = nobody;
  std::int64_t parameter = nobody;
  friend auto operator<=>(const Culprit&, const Culprit&) = default;
};

/// Of a tile, of a rank, of all ranks.
struct Totals {
  /// Of parameters that count here (a tied or replicated one counts once).
  TileStatistics counted;
  /// Elements that are not finite, counted or not.
  std::int64_t nonfinite = 0;
  Culprit culprit;
  /// Pieces in which a sum of several ranks was not finite: one of them may be
  /// the culprit.
  std::int64_t unnamed = 0;

  Totals& operator+=(const Totals& other);
};

/// Collective. Adds up every rank's totals in rank order: every rank has the
/// same bits. exchanged: room for one a rank.
Totals add_over_ranks(Communicator& communicator, const Totals& mine,
                      std::span<Totals> exchanged);

/// Collective. The smallest of all ranks'. exchanged: room for one a rank.
Culprit smallest(Communicator& communicator, const Culprit& mine,
                 std::span<Culprit> exchanged);

}  // namespace kzero::detail
