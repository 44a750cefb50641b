// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/tile_table.hpp"

#include <algorithm>

namespace kzero::detail {

TileTable::TileTable(const Plan& plan, std::span<const Segment> segments,
                     int rank) {
  const std::int64_t buckets = plan.trained_buckets();
  auto segment = segments.begin();
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
    first_tiles_.push_back(static_cast<std::int64_t>(tiles_.size()));
    const std::int64_t size = plan.shards(bucket).size(rank);
    for (std::int64_t begin = 0; begin < size; begin += tile_elements) {
      Tile tile;
      tile.bucket = bucket;
      tile.in_shard = {begin, std::min(size, begin + tile_elements)};
      tile.pieces.begin = static_cast<std::int64_t>(pieces_.size());
      // A segment that reaches past the tile is met again by the next one.
      for (; segment != segments.end() && segment->bucket == bucket;
           ++segment) {
        const Range part = intersect(segment->in_shard, tile.in_shard);
        if (!part.empty()) pieces_.push_back({segment->parameter.index, part});
        if (segment->in_shard.end > tile.in_shard.end) break;
      }
      tile.pieces.end = static_cast<std::int64_t>(pieces_.size());
      tiles_.push_back(tile);
    }
    // A bucket of nothing but empty parameters has no tile.
    while (segment != segments.end() && segment->bucket == bucket) ++segment;
  }
  first_tiles_.push_back(static_cast<std::int64_t>(tiles_.size()));
}

}  // namespace kzero::detail
