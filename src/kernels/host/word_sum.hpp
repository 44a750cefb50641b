// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The inner loop of checksums. For host kernels alone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/host/blocks.hpp"

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

/// Of a product with the upper half of a key, 32 bits count.
struct WordSums {
  std::uint64_t low = 0;
  std::uint32_t high = 0;

  void add(std::uint32_t value, std::uint32_t low_key, std::uint32_t high_key) {
    low += std::uint64_t{value} * low_key;
    high += value * high_key;
  }
  std::uint64_t total() const { return low + (std::uint64_t{high} << 32); }
};

#ifdef __AVX512F__

using Words = Vector<std::uint32_t, 16>;
using WordPairs = Vector<std::uint64_t, 8>;

template <class V>
V read_vector(const void* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Products of the lower words of pairs.
inline WordPairs multiply(WordPairs a, WordPairs b) {
  // Without a mask, gcc 12 warns of its own header.
  return reinterpret_cast<WordPairs>(_mm512_maskz_mul_epu32(
      0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

/// The first whole blocks of 16 words; returns how many words those are. By
/// hand, since compilers multiply 64 bits where 32 suffice: half as fast.
inline std::int64_t sum_blocks(const std::byte* words, const std::uint32_t* low,
                               const std::uint32_t* high, std::int64_t count,
                               WordSums& sums) {
  WordPairs even = {};
  WordPairs odd = {};
  Words highs = {};
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const auto values = read_vector<WordPairs>(words + i * 4);
    const auto keys = read_vector<WordPairs>(low + i);
    even += multiply(values, keys);
    odd += multiply(values >> 32, keys >> 32);
    highs += reinterpret_cast<Words>(values) * read_vector<Words>(high + i);
  }
  for (int lane = 0; lane < 8; ++lane) sums.low += even[lane] + odd[lane];
  for (int lane = 0; lane < 16; ++lane) sums.high += highs[lane];
  return i;
}

#else

inline std::int64_t sum_blocks(const std::byte* words, const std::uint32_t* low,
                               const std::uint32_t* high, std::int64_t count,
                               WordSums& sums) {
  constexpr std::int64_t places = 32;
  std::uint64_t lows[places] = {};
  std::uint32_t highs[places] = {};
  std::int64_t i = 0;
  for (; i + places <= count; i += places)
    for (std::int64_t lane = 0; lane < places; ++lane) {
      const std::uint32_t value = read_word(words + (i + lane) * 4);
      lows[lane] += std::uint64_t{value} * low[i + lane];
      highs[lane] += value * high[i + lane];
    }
  for (std::int64_t lane = 0; lane < places; ++lane) {
    sums.low += lows[lane];
    sums.high += highs[lane];
  }
  return i;
}

#endif

inline std::uint64_t sum_words(const std::byte* words, const std::uint32_t* low,
                               const std::uint32_t* high, std::int64_t count) {
  WordSums sums;
  for (std::int64_t i = sum_blocks(words, low, high, count, sums); i < count;
       ++i)
    sums.add(read_word(words + i * 4), low[i], high[i]);
  return sums.total();
}

}  // namespace
}  // namespace kzero::detail
