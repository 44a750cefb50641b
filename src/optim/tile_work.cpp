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

/// The sums of one tile.
class TileSum {
 public:
  TileSum(const TileWork& work, const BucketWork& bucket,
          const Contributions& contributions, Totals& collected)
      : work_(work),
        bucket_(bucket),
        contributions_(contributions),
        collected_(collected),
        function_(work.kernels.sum[static_cast<std::size_t>(
            contributions.dtype)][bucket.main_bytes == 8 ? 1 : 0]) {}

  /// Neighbours in one call, as far as all is finite; from there on one by one,
  /// because it is told in which parameter it is not.
  void add(std::span<const Piece> run) {
    std::int64_t done = run.front().in_shard.begin;
    const std::int64_t end = run.back().in_shard.end;
    if (run.size() > 1) done += add({done, end}, run.front().parameter, true);
    if (done == end) return;
    for (const Piece& piece : run)
      if (piece.in_shard.end > done)
        add({std::max(done, piece.in_shard.begin), piece.in_shard.end},
            piece.parameter, false);
  }

 private:
  /// Returns how many elements are done.
  std::int64_t add(Range range, std::int64_t parameter, bool stops) {
    Totals found;
    const std::int64_t done = function_(
        {contributions_.parts.data(), contributions_.parts.size(),
         range.begin - contributions_.range.begin, range.size(), work_.scale,
         at(bucket_.averaged, range.begin, bucket_.main_bytes), stops},
        found.counted);
    found.nonfinite = found.counted.nonfinite;
    if (found.nonfinite > 0) {
      found.culprit.rank =
          rank_of(contributions_, found.counted.nonfinite_part);
      found.culprit.parameter = parameter;
      found.unnamed = found.counted.nonfinite_block ? 1 : 0;
    }
    if (work_.counted[static_cast<std::size_t>(parameter)] == 0)
      found.counted = {};
    collected_ += found;
    return done;
  }

  const TileWork& work_;
  const BucketWork& bucket_;
  const Contributions& contributions_;
  Totals& collected_;
  SumFunction function_;
};

/// How many pieces at the front lie side by side and are like the first one.
template <class IsLike>
std::size_t neighbours(std::span<const Piece> pieces, IsLike&& is_like) {
  std::size_t count = 1;
  while (count < pieces.size() &&
         pieces[count].in_shard.begin == pieces[count - 1].in_shard.end &&
         is_like(pieces[count]))
    ++count;
  return count;
}

}  // namespace

void TileWork::sum(std::int64_t tile,
                   const Contributions& contributions) const {
  const Tile& work = tiles.tiles()[static_cast<std::size_t>(tile)];
  const BucketWork& bucket = buckets[static_cast<std::size_t>(work.bucket)];
  Totals& collected = totals[static_cast<std::size_t>(tile)];
  collected = {};
  TileSum sum(*this, bucket, contributions, collected);
  const auto is_counted = [&](const Piece& piece) {
    return counted[static_cast<std::size_t>(piece.parameter)];
  };
  for (auto left = tiles.pieces_of(work); !left.empty();) {
    const Piece& first = left.front();
    std::size_t count = 1;
    if (marks.kept(first.parameter)) {
      std::memset(
          at(bucket.averaged, first.in_shard.begin, bucket.main_bytes), 0,
          static_cast<std::size_t>(first.in_shard.size() * bucket.main_bytes));
    } else {
      count = neighbours(left, [&](const Piece& piece) {
        return is_counted(piece) == is_counted(first) &&
               !marks.kept(piece.parameter);
      });
      sum.add(left.first(count));
    }
    left = left.subspan(count);
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

void TileWork::update(std::int64_t tile) const {
  const Tile& work = tiles.tiles()[static_cast<std::size_t>(tile)];
  const BucketWork& bucket = buckets[static_cast<std::size_t>(work.bucket)];
  const auto dtype = static_cast<std::size_t>(bucket.update_dtype);
  const FlushDenormals flush;
  const auto all = tiles.pieces_of(work);
  for (std::size_t i = 0; i < all.size();) {
    const Piece& piece = all[i];
    const PreparedStep& prepared = classes.prepared(piece.parameter);
    const bool kept = marks.kept(piece.parameter);
    std::size_t count = 1;
    if (prepared.matrix != nullptr) {
      // MatrixUpdates
    } else if (prepared.trust != nullptr) {
      TrustSums& sums =
          trust.of_piece(work.pieces.begin + static_cast<std::int64_t>(i));
      sums = {};
      if (!kept)
        (*prepared.trust)[dtype](arguments_of(prepared, piece.in_shard, bucket),
                                 sums);
    } else if (!kept) {
      count = neighbours(all.subspan(i), [&](const Piece& next) {
        return &classes.prepared(next.parameter) == &prepared &&
               !marks.kept(next.parameter);
      });
      const Range run{piece.in_shard.begin, all[i + count - 1].in_shard.end};
      (*prepared.update)[dtype](arguments_of(prepared, run, bucket));
    }
    i += count;
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
