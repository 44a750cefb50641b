// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace kzero::detail {

/// The product of the extents; -1 where one is negative, and where elements of
/// 8 bytes would have more bytes than can be counted.
inline std::int64_t element_count(std::span<const std::int64_t> extents) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  if (std::ranges::any_of(extents, [](std::int64_t n) { return n < 0; }))
    return -1;
  if (std::ranges::find(extents, 0) != extents.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (product > most / extent) return -1;
    product *= extent;
  }
  return product;
}

}  // namespace kzero::detail
