// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How the shards of a bucket are cut into the pieces of an exchange.
#pragma once

#include <cstdint>
#include <kzero/range.hpp>
#include <kzero/shard_table.hpp>

namespace kzero::detail {

/// Elements of a tile, the unit of work of a thread; pieces of a reduction hold
/// whole ones. 8 KiB of float32: large against a call, and all streams of a
/// tile fit the first caches.
inline constexpr std::int64_t tile_elements = 2048;

/// Piece k is elements [k * length, (k + 1) * length) of every rank's shard, as
/// far as that goes. The cut depends on the table alone and not on the rank,
/// so that all ranks agree on it although their shards may differ.
struct Pieces {
  std::int64_t length = 0;
  std::int64_t count = 0;

  /// Elements of piece k in a shard of shard_size elements; maybe none.
  Range of(std::int64_t k, std::int64_t shard_size) const {
    return intersect({k * length, (k + 1) * length}, {0, shard_size});
  }

  /// Pieces that have elements in a shard: the first so many.
  std::int64_t count_in(std::int64_t shard_size) const {
    return length == 0 ? 0 : (shard_size + length - 1) / length;
  }
};

/// Bytes from one rank's part of a piece to the next: keeps parts aligned.
constexpr std::int64_t part_stride(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

struct PieceOptions {
  std::int64_t element_bytes = 1;
  /// What a piece may take on one rank, unless that is less than granularity
  /// elements of each part.
  std::int64_t bytes = 1;
  /// Pieces end on multiples of this many elements.
  std::int64_t granularity = 1;
};

/// The pieces of a reduction: a rank takes in a part of each of its peers.
Pieces cut_reduction(const ShardTable& shards, const PieceOptions& options);

/// The pieces of a gather through memory that holds one piece: a part of every
/// rank.
Pieces cut_gather(const ShardTable& shards, const PieceOptions& options);

}  // namespace kzero::detail
