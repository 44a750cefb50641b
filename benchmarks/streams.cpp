// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "streams.hpp"

#include <algorithm>
#include <cstddef>

#include "widest.hpp"

namespace kzero::bench {

namespace {

constexpr std::int64_t tile = 2048;

const std::uint32_t* words(const void* data) {
  return static_cast<const std::uint32_t*>(data);
}

// One number for each of a tile, made of all parts.
[[gnu::always_inline]] inline void mix(std::span<const void* const> parts,
                                       std::int64_t first, std::int64_t count,
                                       std::uint32_t* __restrict out) {
  std::size_t part = 1;
  if (parts.size() % 2 == 0) {
    const std::uint32_t* __restrict a = words(parts[0]) + first;
    const std::uint32_t* __restrict b = words(parts[1]) + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] ^ b[i];
    part = 2;
  } else {
    std::copy_n(words(parts[0]) + first, count, out);
  }
  for (; part < parts.size(); part += 2) {
    const std::uint32_t* __restrict a = words(parts[part]) + first;
    const std::uint32_t* __restrict b = words(parts[part + 1]) + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] ^= a[i] ^ b[i];
  }
}

}  // namespace

KZERO_BENCH_WIDEST void move_as_sum(std::span<const void* const> parts,
                                    std::int64_t count, void* out) {
  for (std::int64_t begin = 0; begin < count; begin += tile)
    mix(parts, begin, std::min(tile, count - begin),
        static_cast<std::uint32_t*>(out) + begin);
}

KZERO_BENCH_WIDEST void move_as_update(const UpdateStreams& streams) {
  // Zero, which the compiler does not know: the arrays are read and written.
  static volatile std::uint32_t hidden_zero = 0;
  const std::uint32_t zero = hidden_zero;
  alignas(64) std::uint32_t mixed[tile];
  for (std::int64_t begin = 0; begin < streams.count; begin += tile) {
    const std::int64_t count = std::min(tile, streams.count - begin);
    mix(streams.parts, begin, count, mixed);
    auto* __restrict a = static_cast<std::uint32_t*>(streams.arrays[0]) + begin;
    auto* __restrict b = static_cast<std::uint32_t*>(streams.arrays[1]) + begin;
    auto* __restrict c = static_cast<std::uint32_t*>(streams.arrays[2]) + begin;
    auto* __restrict p =
        static_cast<std::uint16_t*>(streams.parameters) + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t value = mixed[i] & zero;
      a[i] ^= value;
      b[i] ^= value;
      c[i] ^= value;
      p[i] = static_cast<std::uint16_t>(a[i] >> 16);
    }
  }
}

}  // namespace kzero::bench
