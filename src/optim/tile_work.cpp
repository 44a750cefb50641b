// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/tile_work.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/flush_denormals.hpp"

namespace kzero::detail {
namespace {

std::byte* at(std::byte* base, std::int64_t element, std::int64_t bytes) {
  return base == nullptr ? nullptr : base + element * bytes;
}

/// The rank whose gradient was not finite.
std::int64_t rank_of(const Contributions& contributions, std::size_t part) {
  return part == TileStatistics::no_part ? Culprit::only_the_sum
                                         : contributions.parts[part].first_rank;
}

}  // namespace

void TileWork::sum(std::int64_t tile,
                   const Contributions& contributions) const {
  const Tile& work = tiles.tiles()[static_cast<std::size_t>(tile)];
  const BucketWork& bucket = buckets[static_cast<std::size_t>(work.bucket)];
  const SumFunction function =
      kernels.sum[static_cast<std::size_t>(contributions.dtype)]
                 [bucket.main_bytes == 8 ? 1 : 0];
  Totals& collected = totals[static_cast<std::size_t>(tile)];
  collected = {};
  for (const Piece& piece : tiles.pieces_of(work)) {
    const Range range = piece.in_shard;
    std::byte* const out = at(bucket.averaged, range.begin, bucket.main_bytes);
    if (marks.kept(piece.parameter)) {
      std::memset(out, 0,
                  static_cast<std::size_t>(range.size() * bucket.main_bytes));
      continue;
    }
    Totals of_piece;
    function(
        {contributions.parts.data(), contributions.parts.size(),
         range.begin - contributions.range.begin, range.size(), scale, out},
        of_piece.counted);
    of_piece.nonfinite = of_piece.counted.nonfinite;
    if (of_piece.nonfinite > 0) {
      of_piece.culprit.rank =
          rank_of(contributions, of_piece.counted.nonfinite_part);
      of_piece.culprit.parameter = piece.parameter;
      of_piece.unnamed = of_piece.counted.nonfinite_block ? 1 : 0;
    }
    if (counted[static_cast<std::size_t>(piece.parameter)] == 0)
      of_piece.counted = {};
    collected += of_piece;
  }
}

void TileWork::sum_and_update(Range range,
                              const Contributions& contributions) const {
  for (std::int64_t tile = range.begin; tile < range.end; ++tile)
    sum(tile, contributions);
  for (std::int64_t tile = range.begin; tile < range.end; ++tile) update(tile);
}

UpdateTile TileWork::arguments_of(const PreparedStep& prepared, Range in_shard,
                                  const BucketWork& bucket) const {
  const std::int64_t begin = in_shard.begin;
  UpdateTile arguments;
  arguments.step = prepared.step;
  arguments.gradient_factor = clip * prepared.sign;
  arguments.gradient = at(bucket.averaged, begin, bucket.main_bytes);
  arguments.main = at(bucket.main, begin, bucket.main_bytes);
  arguments.parameter = at(bucket.parameter_shard, begin, 2);
  for (std::size_t array = 0; array < maximum_state_arrays; ++array)
    arguments.state[array] = at(bucket.state[array], begin, bucket.main_bytes);
  arguments.count = in_shard.size();
  return arguments;
}

std::int64_t TileWork::end_of_run(std::int64_t piece, std::int64_t end) const {
  const auto all = tiles.pieces();
  const auto at_place = [&](std::int64_t i) -> const Piece& {
    return all[static_cast<std::size_t>(i)];
  };
  const PreparedStep& step = classes.prepared(at_place(piece).parameter);
  std::int64_t next = piece + 1;
  while (next < end &&
         at_place(next).in_shard.begin == at_place(next - 1).in_shard.end &&
         &classes.prepared(at_place(next).parameter) == &step &&
         !marks.kept(at_place(next).parameter))
    ++next;
  return next;
}

void TileWork::update(std::int64_t tile) const {
  const Tile& work = tiles.tiles()[static_cast<std::size_t>(tile)];
  const BucketWork& bucket = buckets[static_cast<std::size_t>(work.bucket)];
  const auto dtype = static_cast<std::size_t>(bucket.update_dtype);
  const FlushDenormals flush;
  for (std::int64_t i = work.pieces.begin; i < work.pieces.end;) {
    const Piece& piece = tiles.pieces()[static_cast<std::size_t>(i)];
    const PreparedStep& prepared = classes.prepared(piece.parameter);
    const bool kept = marks.kept(piece.parameter);
    std::int64_t next = i + 1;
    if (prepared.matrix != nullptr) {
      // MatrixUpdates
    } else if (prepared.trust != nullptr) {
      TrustSums& sums = trust.of_piece(i);
      sums = {};
      if (!kept)
        (*prepared.trust)[dtype](arguments_of(prepared, piece.in_shard, bucket),
                                 sums);
    } else if (!kept) {
      next = end_of_run(i, work.pieces.end);
      const Range run{
          piece.in_shard.begin,
          tiles.pieces()[static_cast<std::size_t>(next - 1)].in_shard.end};
      (*prepared.update)[dtype](arguments_of(prepared, run, bucket));
    }
    i = next;
  }
}

void TileWork::apply_trust_ratios(std::int64_t tile) const {
  const Tile& work = tiles.tiles()[static_cast<std::size_t>(tile)];
  const BucketWork& bucket = buckets[static_cast<std::size_t>(work.bucket)];
  const auto dtype = static_cast<std::size_t>(bucket.update_dtype);
  const FlushDenormals flush;
  for (const Piece& piece : tiles.pieces_of(work)) {
    const PreparedStep& prepared = classes.prepared(piece.parameter);
    if (prepared.trust == nullptr || marks.kept(piece.parameter)) continue;
    UpdateTile arguments = arguments_of(prepared, piece.in_shard, bucket);
    arguments.trust_ratio = trust.of_parameter(piece.parameter);
    (*prepared.update)[dtype](arguments);
  }
}

}  // namespace kzero::detail
