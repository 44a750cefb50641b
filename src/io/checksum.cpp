// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/checksum.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

constexpr std::int64_t word = 4;
constexpr std::int64_t block_words = 1024;
constexpr std::int64_t block = word * block_words;

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014), made odd.
constexpr std::uint64_t key(std::uint64_t number) {
  std::uint64_t x = (number + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (x ^ (x >> 31)) | 1;
}

/// Of the words of a block: halves, so that products of 32 bits suffice.
struct WordKeys {
  alignas(64) std::array<std::uint32_t, block_words> low{};
  alignas(64) std::array<std::uint32_t, block_words> high{};
};

constexpr WordKeys make_word_keys() {
  WordKeys keys;
  for (std::uint64_t i = 0; i < block_words; ++i) {
    keys.low[i] = static_cast<std::uint32_t>(key(i));
    keys.high[i] = static_cast<std::uint32_t>(key(i) >> 32);
  }
  return keys;
}

constexpr WordKeys word_keys = make_word_keys();

constexpr std::uint64_t block_key(std::int64_t number) {
  return key((std::uint64_t{1} << 32) + static_cast<std::uint64_t>(number));
}

/// count whole words from place first of a block on.
std::uint64_t sum_words(const std::byte* from, std::int64_t first,
                        std::int64_t count) {
  return host_kernels().word_sum(from, word_keys.low.data() + first,
                                 word_keys.high.data() + first, count);
}

/// count bytes, that lie in one word, from byte first of it on.
std::uint64_t sum_bytes(const std::byte* from, std::int64_t place_of_word,
                        std::int64_t first, std::int64_t count) {
  std::array<std::byte, word> bytes{};
  std::copy(from, from + count, bytes.begin() + first);
  return sum_words(bytes.data(), place_of_word, 1);
}

/// Bytes [first, first + count) of a block.
std::uint64_t sum_block(const std::byte* from, std::int64_t first,
                        std::int64_t count) {
  std::uint64_t sum = 0;
  const std::int64_t head = std::min((word - first % word) % word, count);
  if (head > 0) sum += sum_bytes(from, first / word, first % word, head);
  const std::int64_t begin = first + head;
  const std::int64_t whole = (count - head) / word;
  sum += sum_words(from + head, begin / word, whole);
  const std::int64_t tail = count - head - whole * word;
  if (tail > 0)
    sum += sum_bytes(from + count - tail, begin / word + whole, 0, tail);
  return sum;
}

}  // namespace

std::uint64_t checksum(std::int64_t place, const void* data,
                       std::int64_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  std::uint64_t sum = 0;
  while (bytes > 0) {
    const std::int64_t first = place % block;
    const std::int64_t count = std::min(block - first, bytes);
    sum += block_key(place / block) * sum_block(from, first, count);
    from += count;
    place += count;
    bytes -= count;
  }
  return sum;
}

}  // namespace kzero::detail
