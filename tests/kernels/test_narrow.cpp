// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// float32 to 16 bits, for every instruction set: the bits of the conversions,
// which tests/core compares with an independent oracle.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/every_set.hpp"
#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

using Narrow = EverySet;

template <class T>
float value_of(std::uint32_t code) {
  T number;
  number.bits = static_cast<std::uint16_t>(code);
  return static_cast<float>(number);
}

/// All codes, the numbers half-way between two of them and those beside these,
/// what is not finite, and numbers all over the range.
template <class T>
std::vector<float> hard_numbers() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers;
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const float x = value_of<T>(code);
    numbers.push_back(x);
    const float next = value_of<T>(code + 1);
    if (code % 0x8000 == 0x7fff || !std::isfinite(x) || !std::isfinite(next))
      continue;
    const float tie = std::midpoint(x, next);
    numbers.insert(numbers.end(), {tie, std::nextafter(tie, infinity),
                                   std::nextafter(tie, -infinity)});
  }
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  for (const float x : {infinity, largest, smallest, 65504.0f, 65519.9f,
                        65520.0f, 65536.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f})
    numbers.insert(numbers.end(), {x, -x});
  for (std::uint32_t shift = 0; shift < 23; ++shift)
    for (const std::uint32_t sign : {0u, 0x80000000u})
      numbers.push_back(
          std::bit_cast<float>(sign | 0x7f800000u | (1u << shift)));
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 40'009)
    numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return numbers;
}

template <class T>
void expect_conversions(std::span<const float> numbers) {
  std::vector<T> out(numbers.size() + 1, T(-7.0f));
  host_kernels().narrow[static_cast<std::size_t>(dtype_of<T>)](
      numbers.data(), out.data(), static_cast<std::int64_t>(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(out[i].bits, T(numbers[i]).bits)
        << std::hexfloat << numbers[i] << " at " << i;
  ASSERT_EQ(out.back().bits, T(-7.0f).bits) << "wrote past the end";
}

TEST_F(Narrow, RoundsToNearestEven) {
  const std::vector<float> for_half = hard_numbers<float16>();
  const std::vector<float> for_brain = hard_numbers<bfloat16>();
  for_each_set([&] {
    expect_conversions<float16>(for_half);
    expect_conversions<bfloat16>(for_brain);
  });
}

TEST_F(Narrow, OfAnyCountAndPlace) {
  const std::vector<float> numbers = random_values<float>(200, 1);
  for_each_set([&] {
    for (std::size_t first : {0u, 1u, 7u})
      for (std::size_t count = 0; count < 100; ++count) {
        expect_conversions<float16>(std::span(numbers).subspan(first, count));
        expect_conversions<bfloat16>(std::span(numbers).subspan(first, count));
      }
  });
}

TEST_F(Narrow, GivesBackWhatWasWidened) {
  for_each_set([] {
    std::vector<bfloat16> codes;
    for (std::uint32_t code = 0; code < 65536; ++code) {
      bfloat16 number;
      number.bits = static_cast<std::uint16_t>(code);
      if (!std::isnan(static_cast<float>(number))) codes.push_back(number);
    }
    const auto count = static_cast<std::int64_t>(codes.size());
    std::vector<float> wide(codes.size());
    std::vector<bfloat16> back(codes.size());
    host_kernels().widen[1](codes.data(), wide.data(), count);
    host_kernels().narrow[1](wide.data(), back.data(), count);
    for (std::size_t i = 0; i < codes.size(); ++i)
      ASSERT_EQ(back[i].bits, codes[i].bits);
  });
}

}  // namespace
}  // namespace kzero::detail
