// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// This rank's shards cut into tiles: the unit of work of a thread, and of the
// partial sums of the norm.
#pragma once

#include <cstdint>
#include <kzero/plan.hpp>
#include <span>
#include <vector>

#include "core/pieces.hpp"

namespace kzero::detail {

/// The part of one parameter in one tile.
struct Piece {
  std::int64_t parameter = 0;
  Range in_shard;
};

/// Has tile_elements, the last one of a shard maybe fewer.
struct Tile {
  std::int64_t bucket = 0;
  Range in_shard;  // begins at a multiple of tile_elements
  Range pieces;    // places in the table's pieces
};

/// Fixed by the plan: the same tiles for every thread count and backend. Holds
/// real elements only; a tile without any is still there, with no pieces.
class TileTable {
 public:
  TileTable() = default;
  TileTable(const Plan& plan, std::span<const Segment> segments, int rank);

  std::span<const Tile> tiles() const { return tiles_; }
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Piece> pieces_of(const Tile& tile) const {
    return pieces().subspan(static_cast<std::size_t>(tile.pieces.begin),
                            static_cast<std::size_t>(tile.pieces.size()));
  }

  /// Tiles of a bucket that is trained; tile k of it begins at element k *
  /// tile_elements.
  Range tiles_of(std::int64_t bucket) const {
    const auto i = static_cast<std::size_t>(bucket);
    return {first_tiles_[i], first_tiles_[i + 1]};
  }

 private:
  std::vector<Tile> tiles_;
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> first_tiles_;
};

}  // namespace kzero::detail
