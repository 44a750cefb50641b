// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How the shards of a bucket are cut into the pieces of a pairwise exchange.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/range.hpp>

namespace kzero::detail {

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

/// The pieces of a reduction: what the peers of a rank send for one piece is
/// piece_bytes or less, unless that is less than piece_granularity elements of
/// each.
Pieces cut_pieces(const ReduceArguments& arguments);

}  // namespace kzero::detail
