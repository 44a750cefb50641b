// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Batches: every image once an epoch, whatever the ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "batches.hpp"

namespace {

TEST(DigitsBatches, EveryFifthImageIsHeldOut) {
  const digits::Split split = digits::split_images(1797);
  EXPECT_EQ(split.training.size(), 1438u);
  EXPECT_EQ(split.held_out.size(), 359u);
  EXPECT_TRUE(std::all_of(split.held_out.begin(), split.held_out.end(),
                          [](int i) { return i % 5 == 4; }));
}

TEST(DigitsBatches, OrderIsAPermutationOfItsOwn) {
  std::vector<int> images(100);
  std::iota(images.begin(), images.end(), 7);
  const auto order = digits::epoch_order(images, 1, 0);
  EXPECT_NE(order, images);
  EXPECT_EQ(order, digits::epoch_order(images, 1, 0));
  EXPECT_NE(order, digits::epoch_order(images, 1, 1));
  EXPECT_NE(order, digits::epoch_order(images, 2, 0));
  EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), images.begin()));
}

TEST(DigitsBatches, PartsCoverABatchEvenly) {
  for (const std::int64_t size : {0, 1, 3, 61, 64}) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      std::int64_t next = 5;
      for (int rank = 0; rank < ranks; ++rank) {
        const kzero::Range part = digits::rank_part({5, 5 + size}, rank, ranks);
        EXPECT_EQ(part.begin, next);
        EXPECT_GE(part.size(), size / ranks);
        EXPECT_LE(part.size(), size / ranks + 1);
        next = part.end;
      }
      EXPECT_EQ(next, 5 + size);
    }
  }
}

TEST(DigitsBatches, LastBatchMayBeSmaller) {
  EXPECT_EQ(digits::batch_count(10, 4), 3);
  EXPECT_EQ(digits::batch_range(10, 4, 2), (kzero::Range{8, 10}));
  EXPECT_EQ(digits::batch_count(8, 4), 2);
  EXPECT_EQ(digits::batch_count(3, 100), 1);
  EXPECT_EQ(digits::batch_range(3, 100, 0), (kzero::Range{0, 3}));
}

}  // namespace
