// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "io/array_pieces.hpp"

using kzero::detail::array_pieces;
using kzero::detail::ArrayPiece;

namespace {

using Extents = std::vector<std::int64_t>;

/// The C-order places of a piece's elements, by counting through its box.
std::vector<std::int64_t> places(const Extents& extents,
                                 const ArrayPiece& piece) {
  std::vector<std::int64_t> found;
  std::function<void(std::size_t, std::int64_t)> visit =
      [&](std::size_t d, std::int64_t place) {
        if (d == extents.size()) {
          found.push_back(place);
          return;
        }
        for (hsize_t i = 0; i < piece.count[d]; ++i)
          visit(d + 1, place * extents[d] +
                           static_cast<std::int64_t>(piece.start[d] + i));
      };
  visit(0, 0);
  return found;
}

TEST(ArrayPieces, TogetherAreTheWholeArrayInOrder) {
  const std::vector<Extents> shapes = {{1},       {7},          {13, 1},
                                       {1, 13},   {2, 3, 5},    {5, 1, 4, 3},
                                       {3, 7, 2}, {1, 1, 1, 11}};
  for (const Extents& extents : shapes) {
    const std::int64_t size = std::accumulate(
        extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t limit = 1; limit <= size + 1; ++limit) {
      std::int64_t next = 0;
      for (const ArrayPiece& piece : array_pieces(extents, limit)) {
        EXPECT_LE(piece.size, limit);
        EXPECT_EQ(piece.offset, next);
        std::vector<std::int64_t> expected(
            static_cast<std::size_t>(piece.size));
        std::iota(expected.begin(), expected.end(), next);
        EXPECT_EQ(places(extents, piece), expected);
        next += piece.size;
      }
      EXPECT_EQ(next, size) << "limit " << limit;
    }
  }
}

TEST(ArrayPieces, IsOnePieceWhereItFits) {
  EXPECT_EQ(array_pieces(Extents{4, 6}, 24).size(), 1u);
  EXPECT_EQ(array_pieces(Extents{4, 6}, 23).size(), 2u);
}

TEST(ArrayPieces, OfAScalarIsOne) {
  const auto pieces = array_pieces(Extents{}, 1);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].size, 1);
  EXPECT_TRUE(pieces[0].start.empty());
}

TEST(ArrayPieces, OfNoElementsAreNone) {
  EXPECT_TRUE(array_pieces(Extents{0}, 8).empty());
  EXPECT_TRUE(array_pieces(Extents{3, 0, 5}, 8).empty());
}

TEST(ArrayPieces, CountBeyond32Bits) {
  const std::int64_t large = std::int64_t{3} << 31;
  const auto pieces = array_pieces(Extents{2, large}, std::int64_t{1} << 28);
  ASSERT_EQ(pieces.size(), 48u);
  EXPECT_EQ(pieces.back().offset + pieces.back().size, 2 * large);
  EXPECT_EQ(pieces.back().start[0], 1u);
}

}  // namespace
