// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/array_pieces.hpp"

#include <algorithm>

namespace kzero::detail {

std::vector<ArrayPiece> array_pieces(std::span<const std::int64_t> extents,
                                     std::int64_t limit) {
  if (std::ranges::find(extents, 0) != extents.end()) return {};
  const std::size_t rank = extents.size();
  if (rank == 0) return {{0, 1, {}, {}}};

  // The cut dimension is the first one whose slices fit; every combination of
  // the indices before it has pieces of its own.
  std::vector<std::int64_t> slice(rank, 1);  // elements of one index
  for (std::size_t d = rank - 1; d > 0; --d)
    slice[d - 1] = slice[d] * extents[d];
  std::size_t cut = 0;
  while (slice[cut] > limit) ++cut;
  const std::int64_t step = std::min(limit / slice[cut], extents[cut]);

  std::int64_t outer = 1;
  for (std::size_t d = 0; d < cut; ++d) outer *= extents[d];
  std::vector<ArrayPiece> pieces;
  std::vector<hsize_t> start(rank, 0);
  std::vector<hsize_t> count(rank, 1);
  for (std::size_t d = cut + 1; d < rank; ++d)
    count[d] = static_cast<hsize_t>(extents[d]);
  std::int64_t offset = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t rest = o;
    for (std::size_t d = cut; d > 0; --d) {
      start[d - 1] = static_cast<hsize_t>(rest % extents[d - 1]);
      rest /= extents[d - 1];
    }
    for (std::int64_t i = 0; i < extents[cut]; i += step) {
      const std::int64_t n = std::min(step, extents[cut] - i);
      start[cut] = static_cast<hsize_t>(i);
      count[cut] = static_cast<hsize_t>(n);
      pieces.push_back({offset, n * slice[cut], start, count});
      offset += n * slice[cut];
    }
  }
  return pieces;
}

}  // namespace kzero::detail
