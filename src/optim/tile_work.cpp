// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/tile_work.hpp"

#include "kernels/flush_denormals.hpp"

namespace kzero::detail {
namespace {

std::byte* at(std::byte* base, std::int64_t element, std::int64_t bytes) {
  return base == nullptr ? nullptr : base + element * bytes;
}

}  // namespace

void TileWork::sum(std::int64_t tile,
                   const Contributions& contributions) const {
  const Tile& work = tiles[static_cast<std::size_t>(tile)];
  const BucketWork& bucket = buckets[static_cast<std::size_t>(work.bucket)];
  const SumFunction function =
      kernels.sum[static_cast<std::size_t>(contributions.dtype)]
                 [bucket.main_bytes == 8 ? 1 : 0];
  TileStatistics& collected = statistics[static_cast<std::size_t>(tile)];
  collected = {};
  for (std::int64_t i = work.pieces.begin; i < work.pieces.end; ++i) {
    const Range range = pieces[static_cast<std::size_t>(i)].in_shard;
    function({contributions.parts.data(), contributions.parts.size(),
              range.begin - contributions.range.begin, range.size(), scale,
              at(bucket.averaged, range.begin, bucket.main_bytes)},
             collected);
  }
}

void TileWork::update(std::int64_t tile) const {
  const Tile& work = tiles[static_cast<std::size_t>(tile)];
  const BucketWork& bucket = buckets[static_cast<std::size_t>(work.bucket)];
  const auto dtype = static_cast<std::size_t>(bucket.dtype);
  const FlushDenormals flush;
  for (std::int64_t i = work.pieces.begin; i < work.pieces.end; ++i) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    const PreparedStep& prepared = classes.prepared(piece.parameter);
    const std::int64_t begin = piece.in_shard.begin;
    UpdateTile arguments;
    arguments.step = prepared.step;
    arguments.gradient_factor = clip * prepared.sign;
    arguments.gradient = at(bucket.averaged, begin, bucket.main_bytes);
    arguments.main = at(bucket.main, begin, bucket.main_bytes);
    arguments.parameter = at(bucket.parameter_shard, begin, 2);
    for (std::size_t array = 0; array < maximum_state_arrays; ++array)
      arguments.state[array] =
          at(bucket.state[array], begin, bucket.main_bytes);
    arguments.count = piece.in_shard.size();
    (*prepared.update)[dtype](arguments);
  }
}

}  // namespace kzero::detail
