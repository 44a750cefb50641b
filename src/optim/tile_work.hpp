// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a thread does with a tile. No Kokkos, no allocation.
#pragma once

#include <cstdint>
#include <kzero/contribution.hpp>
#include <span>

#include "kernels/kernels.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/tile_table.hpp"
#include "optim/update_classes.hpp"

namespace kzero::detail {

struct TileWork {
  const HostKernels& kernels;
  std::span<const Tile> tiles;
  std::span<const Piece> pieces;
  std::span<const BucketWork> buckets;
  const UpdateClasses& classes;
  std::span<TileStatistics> statistics;
  double scale = 1.0;  // of the sum
  double clip = 1.0;   // of the averaged gradient

  /// The averaged gradient of a tile inside contributions.range.
  void sum(std::int64_t tile, const Contributions& contributions) const;

  /// The update of a tile from its averaged gradient.
  void update(std::int64_t tile) const;
};

}  // namespace kzero::detail
