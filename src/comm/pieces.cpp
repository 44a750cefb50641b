// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/pieces.hpp"

#include <algorithm>

namespace kzero::detail {

Pieces cut_pieces(const ReduceArguments& arguments) {
  const ShardTable& shards = arguments.shards;
  std::int64_t largest = 0;
  for (int rank = 0; rank < shards.ranks(); ++rank) {
    largest = std::max(largest, shards.size(rank));
  }
  Pieces pieces;
  // Without peers nothing is sent, and nothing is gained by cutting.
  pieces.length = largest;
  if (const std::int64_t peers = shards.ranks() - 1; peers > 0) {
    const std::int64_t grain = arguments.piece_granularity;
    const std::int64_t fitting =
        arguments.piece_bytes / (peers * size_of(arguments.dtype));
    // No longer than the shard: then k * length cannot overflow.
    pieces.length = std::min(largest, std::max(grain, fitting / grain * grain));
  }
  pieces.count = pieces.count_in(largest);
  return pieces;
}

}  // namespace kzero::detail
