// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Sorted greedy: the largest first, each to the rank that has the least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kzero::detail {

/// How many elements each rank has been given.
class RankLoads {
 public:
  /// By rank, one or more.
  explicit RankLoads(std::span<const std::int64_t> loads);

  /// To the rank that has the fewest elements so far, of several the lowest.
  /// Costs the logarithm of the ranks.
  int give(std::int64_t elements);

  /// What the rank with the most elements has.
  std::int64_t largest() const { return largest_; }

 private:
  // A heap of elements and rank: the least comes first.
  std::vector<std::pair<std::int64_t, int>> heap_;
  std::int64_t largest_ = 0;
};

/// Places in sizes: the largest first, of equal ones the lowest place.
std::vector<std::size_t> largest_first(std::span<const std::int64_t> sizes);

}  // namespace kzero::detail
