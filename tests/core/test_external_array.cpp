// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/external_array.hpp>
#include <utility>

namespace kzero {
namespace {

using Numbers = std::vector<std::int64_t>;

ExternalArray array(Numbers extents, Numbers strides = {}) {
  ExternalArray result;
  result.extents = std::move(extents);
  result.strides = std::move(strides);
  return result;
}

TEST(ExternalArray, CountsItsElements) {
  EXPECT_EQ(array({}).size(), 1);
  EXPECT_EQ(array({7}).size(), 7);
  EXPECT_EQ(array({2, 3, 5}, {15, 5, 1}).size(), 30);
  EXPECT_EQ(array({4, 0, 5}).size(), 0);
}

TEST(ExternalArray, IsContiguousInCOrderWithoutGaps) {
  const std::pair<ExternalArray, bool> cases[] = {
      {array({}), true},
      {array({2, 3}), true},
      {array({2, 3}, {3, 1}), true},
      {array({2, 3}, {4, 1}), false},
      {array({2, 3}, {1, 2}), false},
      {array({6}, {2}), false},
      {array({1}, {9}), true},
      {array({1, 3, 1}, {8, 1, 5}), true},
      {array({3, 1}, {1, 3}), true},
      {array({3, 1}, {2, 1}), false},
      {array({5, 0, 3}, {0, 7, 9}), true},
      {array({2, 3, 4}, {12, 4, 1}), true},
      {array({2, 3, 4}, {4, 8, 1}), false},
  };
  for (std::size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(cases[i].first.is_contiguous(), cases[i].second) << i;
}

}  // namespace
}  // namespace kzero
