// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Copies with strides against a walk over the indices, one element at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "storage/strided_copy.hpp"

namespace kzero::detail {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Where each element lies, in C order of the indices.
Numbers offsets_of(const Numbers& extents, const Numbers& strides) {
  Numbers offsets = {0};
  for (std::size_t d = 0; d < extents.size(); ++d) {
    Numbers longer;
    for (const std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < extents[d]; ++i)
        longer.push_back(offset + i * strides[d]);
    offsets = longer;
  }
  return offsets;
}

Numbers c_order(const Numbers& extents) {
  Numbers strides(extents.size());
  std::int64_t step = 1;
  for (std::size_t d = extents.size(); d-- > 0; step *= extents[d])
    strides[d] = step;
  return strides;
}

/// Strides for dimensions that lie in memory in the given order, the first
/// innermost, with gaps between them.
Numbers strides_of(const Numbers& extents,
                   const std::vector<std::size_t>& order, const Numbers& gaps) {
  Numbers strides(extents.size());
  std::int64_t step = 1;
  for (std::size_t k = 0; k < order.size(); ++k) {
    step += gaps[k];
    strides[order[k]] = step;
    step *= std::max(extents[order[k]], std::int64_t{1});
  }
  return strides;
}

template <class T>
T number(std::int64_t i) {
  return T(static_cast<float>(i % 2039 - 1000));
}

template <class T>
bool same(T a, T b) {
  return static_cast<double>(a) == static_cast<double>(b);
}

/// Reads, writes and zeroes a range of the array and looks at every element of
/// its memory.
template <class T>
void expect_copies(const Numbers& extents, const Numbers& strides,
                   Range range) {
  constexpr std::int64_t before = 5;  // the first element is not the memory's
  const Numbers offsets =
      offsets_of(extents, strides.empty() ? c_order(extents) : strides);
  std::int64_t last = 0;
  for (const std::int64_t offset : offsets) last = std::max(last, offset);
  std::vector<T> memory(static_cast<std::size_t>(before + last + 7));
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = number<T>(static_cast<std::int64_t>(i));
  const std::vector<T> original = memory;
  const ExternalArray array{.data = memory.data() + before,
                            .dtype = dtype_of<T>,
                            .extents = extents,
                            .strides = strides};
  const auto place = [&](std::int64_t i) {
    return static_cast<std::size_t>(before +
                                    offsets[static_cast<std::size_t>(i)]);
  };

  const auto count = static_cast<std::size_t>(range.size());
  std::vector<T> packed(count + 1, T(-1.0f));
  read_elements(array, range, packed.data());
  for (std::int64_t i = range.begin; i < range.end; ++i)
    ASSERT_TRUE(same(packed[static_cast<std::size_t>(i - range.begin)],
                     original[place(i)]))
        << i;
  ASSERT_TRUE(same(packed[count], T(-1.0f)));

  std::vector<T> expected = original;
  for (std::size_t i = 0; i < count; ++i) {
    packed[i] = number<T>(static_cast<std::int64_t>(i) + 77);
    expected[place(range.begin + static_cast<std::int64_t>(i))] = packed[i];
  }
  write_elements(array, range, packed.data());
  for (std::size_t i = 0; i < memory.size(); ++i)
    ASSERT_TRUE(same(memory[i], expected[i])) << i;

  for (std::int64_t i = range.begin; i < range.end; ++i)
    expected[place(i)] = T(0.0f);
  fill_zero(array, range);
  for (std::size_t i = 0; i < memory.size(); ++i)
    ASSERT_TRUE(same(memory[i], expected[i])) << i;
}

void expect_copies_of_all_types(const Numbers& extents, const Numbers& strides,
                                Range range) {
  expect_copies<float16>(extents, strides, range);
  expect_copies<bfloat16>(extents, strides, range);
  expect_copies<float>(extents, strides, range);
  expect_copies<double>(extents, strides, range);
}

TEST(StridedCopy, OfAScalar) {
  expect_copies_of_all_types({}, {}, {0, 1});
  expect_copies_of_all_types({}, {}, {0, 0});
  expect_copies_of_all_types({1, 1, 1}, {9, 5, 7}, {0, 1});
}

TEST(StridedCopy, OfNoElements) {
  expect_copies_of_all_types({0}, {}, {0, 0});
  expect_copies_of_all_types({4, 0, 3}, {0, 0, 0}, {0, 0});
  expect_copies_of_all_types({6}, {2}, {4, 4});
}

TEST(StridedCopy, OfEveryRangeOfASmallMatrix) {
  const Numbers extents = {5, 7};
  for (const Numbers& strides :
       {Numbers{}, Numbers{7, 1}, Numbers{9, 1}, Numbers{1, 5}, Numbers{1, 6},
        Numbers{21, 3}, Numbers{2, 10}})
    for (std::int64_t begin = 0; begin <= 35; ++begin)
      for (std::int64_t end = begin; end <= 35; ++end)
        expect_copies<float>(extents, strides, {begin, end});
}

TEST(StridedCopy, OfTransposedMatricesLargerThanABlock) {
  for (const Range range : {Range{0, 101 * 67}, Range{66, 67}, Range{66, 68},
                            Range{3, 100 * 67 + 1}, Range{67, 33 * 67},
                            Range{67 * 40 + 5, 67 * 73 + 66}}) {
    expect_copies_of_all_types({101, 67}, {1, 101}, range);
    expect_copies_of_all_types({101, 67}, {1, 110}, range);
    expect_copies_of_all_types({101, 67}, {3, 330}, range);
  }
}

// All of them LayoutRight, LayoutLeft and everything between, as subviews have
// them.
TEST(StridedCopy, OfAllRanksInAnyOrderOfMemory) {
  std::mt19937 engine(7);
  const auto below = [&](std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(engine);
  };
  constexpr std::int64_t sides[] = {1, 1, 2, 3, 5, 7, 37};
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(round);
    const auto rank = static_cast<std::size_t>(below(9));
    Numbers extents(rank);
    std::int64_t size = 1;
    for (std::int64_t& extent : extents) {
      extent = sides[below(7)];
      if (size * extent > 4000) extent = 1;
      size *= extent;
    }
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (below(3) == 0) std::reverse(order.begin(), order.end());
    if (below(2) == 0) std::shuffle(order.begin(), order.end(), engine);
    Numbers gaps(rank, 0);
    for (std::int64_t& gap : gaps)
      if (below(4) == 0) gap = below(3);
    Range range{0, size};
    if (below(2) == 0) range.begin = below(size + 1);
    if (below(2) == 0) range.end -= below(range.size() + 1);
    const Numbers strides = strides_of(extents, order, gaps);
    if (round % 2 == 0)
      expect_copies<float>(extents, strides, range);
    else
      expect_copies<bfloat16>(extents, strides, range);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace kzero::detail
