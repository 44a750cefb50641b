// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a thread does with a tile. No Kokkos, no allocation.
#pragma once

#include <cstdint>
#include <kzero/contribution.hpp>
#include <span>

#include "kernels/kernels.hpp"
#include "optim/marks.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/tile_table.hpp"
#include "optim/totals.hpp"
#include "optim/trust_ratios.hpp"
#include "optim/update_classes.hpp"

namespace kzero::detail {

struct TileWork {
  const HostKernels& kernels;
  const TileTable& tiles;
  std::span<const BucketWork> buckets;
  const UpdateClasses& classes;
  const Marks& marks;
  /// By parameter: whether the global quantities count it here.
  std::span<const std::uint8_t> counted;
  std::span<Totals> totals;  // by tile
  TrustRatios& trust;
  double scale = 1.0;  // of the sum
  double clip = 1.0;   // of the averaged gradient

  /// The averaged gradient of a tile inside contributions.range, and its
  /// totals.
  void sum(std::int64_t tile, const Contributions& contributions) const;

  /// Both, of all tiles of a range.
  void sum_and_update(Range range, const Contributions& contributions) const;

  /// How many tiles that is best for. What peers have can be in small pages:
  /// it comes faster in one long stream, and the averages stay in the second
  /// cache. A rank's own memory is as fast in short ones.
  static std::int64_t tiles_at_a_time(const Contributions& contributions) {
    return contributions.parts.size() > 1 ? 16 : 1;
  }

  /// The update of a tile from its averaged gradient; of a parameter with a
  /// trust ratio the first part: its state, and the sums for the ratio. Leaves
  /// parameters alone whose rule is for matrices.
  void update(std::int64_t tile) const;

  /// The second part, when the ratios are known.
  void apply_trust_ratios(std::int64_t tile) const;

 private:
  UpdateTile arguments_of(const PreparedStep& prepared, Range in_shard,
                          const BucketWork& bucket) const;
};

}  // namespace kzero::detail
