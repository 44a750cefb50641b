// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A half-open range of element indices.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kzero {

/// Elements begin, begin + 1, ..., end - 1.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// The common part of two ranges; an empty range when there is none.
constexpr Range intersect(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// The range moved by an offset.
constexpr Range shift(Range range, std::int64_t offset) {
  return {range.begin + offset, range.end + offset};
}

}  // namespace kzero
