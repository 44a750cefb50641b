// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/exchange_pieces.hpp"

#include <gtest/gtest.h>

#include "layout/layout_testing.hpp"

namespace kzero::detail {
namespace {

using test::add_external;

TEST(ExchangePieces, OfAReductionAreWholeTiles) {
  ParameterSet set;
  set.add("w", {1'000'000}, {.dtype = DType::bfloat16});
  // 2 peers of 4 bytes: 50'000 / 8 = 6250 elements, 3 tiles.
  const Plan plan = make_plan(set, {.ranks = 3, .bucket_bytes = 50'000});
  EXPECT_EQ(reduction_pieces(plan, 0).length, 3 * 2048);
  EXPECT_EQ(gather_piece_bytes(plan), 0);
}

TEST(ExchangePieces, OfAGatherAreWholeLines) {
  ParameterSet set;
  add_external(set, "w", 1'000'000, {.dtype = DType::bfloat16});
  // 3 ranks of 2 bytes: 50'000 / 6 = 8333 elements, to 64.
  const Plan plan = make_plan(set, {.ranks = 3, .bucket_bytes = 50'000});
  const Pieces pieces = gather_pieces(plan, 0);
  EXPECT_EQ(pieces.length, 8320);
  EXPECT_EQ(pieces.count, (plan.shards(0).size(0) + 8319) / 8320);
  EXPECT_EQ(gather_piece_bytes(plan), 3 * 8320 * 2);
}

TEST(ExchangePieces, StagingIsThatOfTheLargestPiece) {
  ParameterSet set;
  add_external(set, "few", 100, {.dtype = DType::float64});
  add_external(set, "more", 600, {.dtype = DType::float16});
  add_external(set, "frozen", 2000, {.frozen = true});
  set.add("others", {100'000});
  const Plan plan = make_plan(set, {.ranks = 2});
  EXPECT_EQ(gather_piece_bytes(plan), 2048 * 4);
}

}  // namespace
}  // namespace kzero::detail
