// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The inner loop of checksums. For host kernels alone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kzero::detail {
namespace {

inline std::uint32_t read_word(const std::byte* from) {
  std::uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big)
    value = (value >> 24) | (value >> 8 & 0xff00u) | (value << 8 & 0xff0000u) |
            (value << 24);
  return value;
}

inline std::uint64_t sum_words(const std::byte* words, const std::uint32_t* low,
                               const std::uint32_t* high, std::int64_t count) {
  constexpr std::int64_t places = 32;
  constexpr std::int64_t word = sizeof(std::uint32_t);
  std::uint64_t lows[places] = {};
  std::uint64_t highs[places] = {};
  std::int64_t i = 0;
  for (; i + places <= count; i += places)
    for (std::int64_t lane = 0; lane < places; ++lane) {
      const std::uint64_t value = read_word(words + (i + lane) * word);
      lows[lane] += value * low[i + lane];
      highs[lane] += value * high[i + lane];
    }
  std::uint64_t sum = 0;
  for (; i < count; ++i) {
    const std::uint64_t value = read_word(words + i * word);
    sum += value * low[i] + (value * high[i] << 32);
  }
  for (std::int64_t lane = 0; lane < places; ++lane)
    sum += lows[lane] + (highs[lane] << 32);
  return sum;
}

}  // namespace
}  // namespace kzero::detail
