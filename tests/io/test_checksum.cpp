// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kzero::detail {
namespace {

/// As docs/checkpoint_format.md defines it.
std::uint64_t key_part(std::uint64_t n) {
  std::uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (x ^ (x >> 31)) | 1;
}

std::uint64_t by_definition(const std::vector<unsigned char>& bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < 4 && i + k < bytes.size(); ++k)
      word |= std::uint64_t{bytes[i + k]} << (8 * k);
    const std::uint64_t n = i / 4;
    sum += word * key_part(n % 1024) *
           key_part((std::uint64_t{1} << 32) + n / 1024);
  }
  return sum;
}

std::vector<unsigned char> some_bytes(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  std::uint64_t state = 1;
  for (unsigned char& each : bytes)
    each = static_cast<unsigned char>(key_part(state++) >> 20);
  return bytes;
}

std::uint64_t sum_of(const std::vector<unsigned char>& bytes) {
  return checksum(0, bytes.data(), std::ssize(bytes));
}

TEST(Checksum, IsWhatTheFormatSays) {
  for (const std::size_t count :
       {0u, 1u, 3u, 4u, 31u, 33u, 4095u, 4096u, 4097u, 12289u, 100003u})
    EXPECT_EQ(sum_of(some_bytes(count)), by_definition(some_bytes(count)))
        << count;
}

TEST(Checksum, IsTheSumOfAnyParts) {
  const auto bytes = some_bytes(20011);
  const std::uint64_t whole = sum_of(bytes);
  for (std::int64_t step : {1, 2, 3, 5, 64, 1021, 4096, 5000, 9999}) {
    std::uint64_t sum = 0;
    for (std::int64_t at = 0; at < std::ssize(bytes); at += step)
      sum += checksum(at, bytes.data() + at,
                      std::min(step, std::ssize(bytes) - at));
    EXPECT_EQ(sum, whole) << step;
  }
}

TEST(Checksum, ChangesWithEveryBit) {
  auto bytes = some_bytes(9001);
  const std::uint64_t whole = sum_of(bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 13)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ (1 << bit));
      EXPECT_NE(sum_of(bytes), whole);
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ (1 << bit));
    }
}

// The same change at two places, words that change places, a zeroed stretch.
TEST(Checksum, ChangesWithPairs) {
  auto bytes = some_bytes(16384);
  const std::uint64_t whole = sum_of(bytes);
  for (std::size_t i = 3; i + 4096 < bytes.size(); i += 4)
    for (const std::size_t far : {4u, 8u, 4096u}) {
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ 128);
      bytes[i + far] = static_cast<unsigned char>(bytes[i + far] ^ 128);
      EXPECT_NE(sum_of(bytes), whole);
      bytes[i] = static_cast<unsigned char>(bytes[i] ^ 128);
      bytes[i + far] = static_cast<unsigned char>(bytes[i + far] ^ 128);
    }
  std::swap_ranges(bytes.begin(), bytes.begin() + 512, bytes.begin() + 4096);
  EXPECT_NE(sum_of(bytes), whole);
  std::fill(bytes.begin() + 100, bytes.begin() + 1000, 0);
  EXPECT_NE(sum_of(bytes), whole);
}

}  // namespace
}  // namespace kzero::detail
