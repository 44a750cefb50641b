// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "core/pieces.hpp"

#include <algorithm>

namespace kzero::detail {
namespace {

// Of parts parts each, 1 or more.
Pieces cut(std::int64_t largest, std::int64_t parts,
           const PieceOptions& options) {
  const std::int64_t grain = options.granularity;
  const std::int64_t fitting = options.bytes / (parts * options.element_bytes);
  Pieces pieces;
  // No longer than the shard: then k * length cannot overflow.
  pieces.length = std::min(largest, std::max(grain, fitting / grain * grain));
  pieces.count = pieces.count_in(largest);
  return pieces;
}

}  // namespace

Pieces cut_reduction(const ShardTable& shards, const PieceOptions& options) {
  const std::int64_t largest = shards.largest();
  // Without peers nothing is sent, and nothing is gained by cutting.
  if (shards.ranks() < 2) return {largest, largest > 0 ? 1 : 0};
  return cut(largest, shards.ranks() - 1, options);
}

Pieces cut_gather(const ShardTable& shards, const PieceOptions& options) {
  if (shards.ranks() < 1) return {};
  return cut(shards.largest(), shards.ranks(), options);
}

}  // namespace kzero::detail
