// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The averaged gradient of a tile and its statistics, in one pass over the
// parts. For host kernels alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/host/block_access.hpp"
#include "kernels/host/ordered_sum.hpp"
#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

KZERO_FUNCTION bool is_nonfinite(float x) {
  return (__builtin_bit_cast(std::uint32_t, x) & 0x7f800000u) == 0x7f800000u;
}

KZERO_FUNCTION bool is_nonfinite(double x) {
  constexpr std::uint64_t exponent = 0x7ff0000000000000u;
  return (__builtin_bit_cast(std::uint64_t, x) & exponent) == exponent;
}

/// Element i goes to lane i % 16; chunks start at lane 0.
template <class T>
KZERO_FUNCTION void add_squares(const Block<T>& values,
                                Block<double>& squares) {
  const auto wide = convert_block<double>(values);
  squares = squares + wide * wide;
}

template <class Sum>
struct Checks {
  decltype(is_zero(Block<Sum>())) zeros;  // negative
  Block<Sum> poison;                      // 0, or NaN after what was not finite
};

template <class Sum>
KZERO_FUNCTION void collect(const Block<Sum>& values, Checks<Sum>& checks,
                            Block<double>& squares) {
  checks.zeros = checks.zeros + is_zero(values);
  checks.poison = checks.poison + (values - values);
  add_squares(values, squares);
}

/// What is checked and counted is what is stored: Out can be narrower than the
/// sum. Past count the statistics see zeros. out has room for whole blocks
/// where it is held.
template <class Out, class Sum, class Source>
KZERO_FUNCTION Checks<Sum> finish_chunk(const Source& source, Sum scale,
                                        std::int64_t count, Out* out, bool held,
                                        Block<double>& squares) {
  Checks<Sum> checks;
  Block<double> added = squares;
  const std::int64_t whole = opaque(count / lanes * lanes);
  for (std::int64_t i = 0; i < whole; i += lanes) {
    const auto stored = convert_block<Out>(source.block(i, lanes) * scale);
    store(stored, out + i, lanes);
    collect(convert_block<Sum>(stored), checks, added);
  }
  if (whole < count) {
    const auto left = static_cast<int>(count - whole);
    const auto stored = convert_block<Out>(source.block(whole, left) * scale);
    store(stored, out + whole, held ? lanes : left);
    collect(convert_block<Sum>(front(stored, left)), checks, added);
  }
  squares = added;
  return checks;
}

template <class In>
bool has_nonfinite(const void* part, std::int64_t first, std::int64_t count) {
  const In* in = static_cast<const In*>(part) + first;
  for (std::int64_t i = 0; i < count; ++i)
    if (is_nonfinite(static_cast<SumType<In>>(in[i]))) return true;
  return false;
}

/// Which parts are not finite in count elements from first on.
template <class In>
[[gnu::noinline]] void find_nonfinite(const SumTile& tile, std::int64_t first,
                                      std::int64_t count,
                                      TileStatistics& statistics) {
  const std::size_t end = statistics.nonfinite_part < tile.part_count
                              ? statistics.nonfinite_part
                              : tile.part_count;
  for (std::size_t part = 0; part < end; ++part) {
    const Contribution& from = tile.parts[part];
    if (from.rank_count > 1) {
      statistics.nonfinite_block |=
          has_nonfinite<SumType<In>>(from.data, first, count);
    } else if (has_nonfinite<In>(from.data, first, count)) {
      statistics.nonfinite_part = part;
      return;
    }
  }
}

template <class In, class Out>
[[gnu::noinline]] void count_nonfinite(const SumTile& tile, std::int64_t begin,
                                       std::int64_t count, const Out* values,
                                       TileStatistics& statistics) {
  for (std::int64_t i = 0; i < count; ++i)
    if (is_nonfinite(values[i])) ++statistics.nonfinite;
  find_nonfinite<In>(tile, tile.first + begin, count, statistics);
}

KZERO_FUNCTION std::int64_t chunk_of(const SumTile& tile, std::int64_t begin) {
  const std::int64_t left = tile.count - begin;
  return left < chunk_size ? left : chunk_size;
}

/// From memory of whole blocks.
template <class T>
KZERO_FUNCTION void take_held(const T* held, std::int64_t count, T* out) {
  const std::int64_t whole = opaque(count / lanes * lanes);
  for (std::int64_t i = 0; i < whole; i += lanes)
    store(load(held + i, lanes), out + i, lanes);
  if (whole < count)
    store(load(held + whole, lanes), out + whole,
          static_cast<int>(count - whole));
}

/// source_of(begin, count): the sums of a chunk.
template <class In, class Out, class F>
KZERO_FUNCTION std::int64_t finish(const SumTile& tile, F&& source_of,
                                   TileStatistics& statistics) {
  using Sum = SumType<In>;
  const Sum scale = static_cast<Sum>(tile.scale);
  Block<double> squares;
  // Parts are looked at again where something is not finite: out may be one.
  bool in_place = false;
  for (std::size_t i = 0; i < tile.part_count; ++i)
    in_place |=
        tile.parts[i].rank_count == 1 &&
        static_cast<const In*>(tile.parts[i].data) + tile.first == tile.out;
  alignas(64) Out held[chunk_size];
  for (std::int64_t begin = 0; begin < tile.count; begin += chunk_size) {
    const std::int64_t count = chunk_of(tile, begin);
    Out* const out = static_cast<Out*>(tile.out) + begin;
    Out* const target = in_place ? held : out;
    const auto source = source_of(begin, count);
    Block<double> added = squares;
    const Checks<Sum> checks =
        finish_chunk<Out>(source, scale, count, target, in_place, added);
    const Sum poison = add_lanes(checks.poison);
    if (poison != poison) [[unlikely]] {
      if (tile.stops) {
        statistics.squares += add_lanes(squares);
        return begin;
      }
      count_nonfinite<In>(tile, begin, count, target, statistics);
    }
    squares = added;
    const std::int64_t past_count = (lanes - count % lanes) % lanes;
    statistics.zeros -= add_lanes(checks.zeros) + past_count;
    if (in_place) take_held(held, count, out);
  }
  statistics.squares += add_lanes(squares);
  return tile.count;
}

template <class In, class Out>
std::int64_t sum(const SumTile& tile, TileStatistics& statistics) {
  const int log = subtree_log(tile.parts, tile.part_count, maximum_levels);
  if (tile.part_count == std::size_t{1} << log) {
    std::int64_t done = 0;
    with_subtree<In>(tile.parts, tile.first, log, [&](const auto& subtree) {
      done = finish<In, Out>(
          tile,
          [&](std::int64_t begin, std::int64_t) {
            return subtree.shifted(begin);
          },
          statistics);
    });
    return done;
  }
  alignas(64) PartialSums<SumType<In>> partial;
  return finish<In, Out>(
      tile,
      [&](std::int64_t begin, std::int64_t count) {
        sum_chunk<In>(tile, tile.first + begin, count, partial);
        return Stored<SumType<In>>{partial[0]};
      },
      statistics);
}

}  // namespace
}  // namespace kzero::detail
