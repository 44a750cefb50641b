// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The ordered sum of a chunk of a tile. For host kernels alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/host/block_access.hpp"
#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

// A chunk stays in the first cache together with its partial sums.
constexpr std::int64_t chunk_size = 256;
constexpr int maximum_levels = 32;

template <class In>
using SumType = std::conditional_t<std::is_same_v<In, double>, double, float>;

/// Sums that stand in memory.
template <class Sum>
struct Stored {
  const Sum* values;

  KZERO_FUNCTION Block<Sum> block(std::int64_t i, int count) const {
    return load(values + i, count);
  }
};

/// A whole subtree of the ordered sum: parts that are added up in registers.
template <class In, std::size_t size>
struct Subtree {
  std::array<const In*, size> parts;

  Subtree(const Contribution* from, std::int64_t first) {
    for (std::size_t i = 0; i < size; ++i)
      parts[i] = static_cast<const In*>(from[i].data) + first;
  }

  KZERO_FUNCTION Block<SumType<In>> block(std::int64_t i, int count) const {
    return add<0, size>(i, count);
  }

  KZERO_FUNCTION Subtree shifted(std::int64_t by) const {
    Subtree result = *this;
    for (const In*& part : result.parts) part += by;
    return result;
  }

 private:
  template <std::size_t begin, std::size_t of>
  KZERO_FUNCTION Block<SumType<In>> add(std::int64_t i, int count) const {
    if constexpr (of == 1)
      return load(parts[begin] + i, count);
    else
      return add<begin, of / 2>(i, count) +
             add<begin + of / 2, of / 2>(i, count);
  }
};

KZERO_FUNCTION int level_of(int rank_count) {
  return 31 - __builtin_clz(static_cast<unsigned>(rank_count));
}

/// Of how many parts at the front the subtree is: of 2^k, at most 8, all of
/// one level, and no more than 2^room.
inline int subtree_log(const Contribution* parts, std::size_t left, int room) {
  const int level = level_of(parts[0].rank_count);
  std::size_t same = 1;
  while (same < 8 && same < left && level_of(parts[same].rank_count) == level)
    ++same;
  int log = 0;
  while (log < room && (std::size_t{2} << log) <= same) ++log;
  return log;
}

template <class T, class F>
KZERO_FUNCTION void with_subtree_of(const Contribution* parts,
                                    std::int64_t first, int log, F&& call) {
  switch (log) {
    case 0:
      return call(Subtree<T, 1>(parts, first));
    case 1:
      return call(Subtree<T, 2>(parts, first));
    case 2:
      return call(Subtree<T, 4>(parts, first));
    default:
      return call(Subtree<T, 8>(parts, first));
  }
}

/// Parts of several ranks are sums already.
template <class In, class F>
KZERO_FUNCTION void with_subtree(const Contribution* parts, std::int64_t first,
                                 int log, F&& call) {
  if (std::is_same_v<In, SumType<In>> || parts[0].rank_count == 1)
    with_subtree_of<In>(parts, first, log, call);
  else
    with_subtree_of<SumType<In>>(parts, first, log, call);
}

template <class Source, class Sum>
KZERO_FUNCTION void copy_chunk(const Source& source, std::int64_t count,
                               Sum* out) {
  const std::int64_t whole = opaque(count / lanes * lanes);
  for (std::int64_t i = 0; i < whole; i += lanes)
    store(source.block(i, lanes), out + i, lanes);
  if (whole < count) {
    const auto left = static_cast<int>(count - whole);
    store(source.block(whole, left), out + whole, left);
  }
}

template <class Source, class Sum>
KZERO_FUNCTION void add_chunk(const Source& source, std::int64_t count,
                              Sum* out) {
  const std::int64_t whole = opaque(count / lanes * lanes);
  for (std::int64_t i = 0; i < whole; i += lanes)
    store(load(out + i, lanes) + source.block(i, lanes), out + i, lanes);
  if (whole < count) {
    const auto left = static_cast<int>(count - whole);
    store(load(out + whole, left) + source.block(whole, left), out + whole,
          left);
  }
}

template <class Sum>
using PartialSums = Sum[maximum_levels][chunk_size];

/// Into partial[0], as a binary counter carries: partial[d] holds the sum of
/// 2^level[d] ranks, levels fall with d, equal levels are added at once.
template <class In>
void sum_chunk(const SumTile& tile, std::int64_t first, std::int64_t count,
               PartialSums<SumType<In>>& partial) {
  using Sum = SumType<In>;
  int level[maximum_levels];
  int depth = 0;
  for (std::size_t i = 0; i < tile.part_count;) {
    const int own = level_of(tile.parts[i].rank_count);
    const int log =
        subtree_log(tile.parts + i, tile.part_count - i,
                    depth == 0 ? maximum_levels : level[depth - 1] - own);
    const bool carries = depth > 0 && level[depth - 1] == own + log;
    Sum* const target = partial[carries ? depth - 1 : depth];
    with_subtree<In>(tile.parts + i, first, log, [&](const auto& source) {
      if (carries)
        add_chunk(source, count, target);
      else
        copy_chunk(source, count, target);
    });
    if (carries)
      ++level[depth - 1];
    else
      level[depth++] = own + log;
    i += std::size_t{1} << log;
    for (; depth > 1 && level[depth - 2] == level[depth - 1]; --depth) {
      add_chunk(Stored<Sum>{partial[depth - 1]}, count, partial[depth - 2]);
      ++level[depth - 2];
    }
  }
  for (; depth > 1; --depth)
    add_chunk(Stored<Sum>{partial[depth - 1]}, count, partial[depth - 2]);
}

}  // namespace
}  // namespace kzero::detail
