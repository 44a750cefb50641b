// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The 16-bit "brain" float: the upper half of an IEEE float32.
#pragma once

#include <cstdint>
#include <kzero/macros.hpp>

namespace kzero {

namespace detail {

KZERO_FUNCTION constexpr std::uint32_t float_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}

KZERO_FUNCTION constexpr float bits_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

}  // namespace detail

/// Storage type of 2 bytes with exact conversions; arithmetic is done in
/// float. From float: round to nearest, ties to even; NaN stays a (quiet) NaN,
/// infinities stay, values past the largest finite one become infinity,
/// subnormals are kept. To float: exact.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;

  KZERO_FUNCTION constexpr explicit bfloat16(float value)
      : bits(round(detail::float_bits(value))) {}

  KZERO_FUNCTION constexpr operator float() const {
    return detail::bits_float(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  KZERO_FUNCTION static constexpr std::uint16_t round(std::uint32_t x) {
    const std::uint32_t rounded = x + 0x7fffu + ((x >> 16) & 1u);
    const std::uint32_t quiet_nan = x | 0x00400000u;
    const bool nan = (x & 0x7fffffffu) > 0x7f800000u;
    return static_cast<std::uint16_t>((nan ? quiet_nan : rounded) >> 16);
  }
};

static_assert(sizeof(bfloat16) == 2);

}  // namespace kzero
