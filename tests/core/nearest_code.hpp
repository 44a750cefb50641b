// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// An independent oracle for 16-bit floats: their codes as exact double values,
// and rounding as a search for the nearest code.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace kzero::test {

struct Format {
  int fraction_bits;
  int bias;
  std::uint16_t infinity;  // its code; the greatest finite one is below it
  std::uint16_t quiet;     // the fraction's upper bit
};

inline constexpr Format binary16{10, 15, 0x7c00, 0x0200};
inline constexpr Format brain16{7, 127, 0x7f80, 0x0040};

/// Value of a code without sign, up to and including infinity's, which stands
/// for the power of two that would follow the greatest finite number.
inline double value_of(Format format, std::uint32_t code) {
  const int exponent = static_cast<int>(code >> format.fraction_bits);
  const std::uint32_t one = 1u << format.fraction_bits;
  const std::uint32_t fraction = code & (one - 1);
  const int unit = 1 - format.bias - format.fraction_bits;
  if (exponent == 0) return std::ldexp(fraction, unit);
  return std::ldexp(one + fraction, unit + exponent - 1);
}

/// The code nearest to x, which is not a NaN; of two equally near the even one.
inline std::uint16_t nearest_code(Format format, float x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const double magnitude = std::fabs(static_cast<double>(x));
  std::uint32_t below = 0;
  std::uint32_t above = format.infinity;
  if (magnitude >= value_of(format, above))
    return static_cast<std::uint16_t>(above | sign);
  while (above - below > 1) {
    const std::uint32_t middle = (below + above) / 2;
    (value_of(format, middle) <= magnitude ? below : above) = middle;
  }
  // Both distances are exact in double precision.
  const double down = magnitude - value_of(format, below);
  const double up = value_of(format, above) - magnitude;
  const bool upward = down > up || (down == up && below % 2 == 1);
  return static_cast<std::uint16_t>((upward ? above : below) | sign);
}

inline std::uint32_t bits_of(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline float float_of(std::uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

template <class T>
float widen(std::uint32_t code) {
  T number;
  number.bits = static_cast<std::uint16_t>(code);
  return static_cast<float>(number);
}

/// To float: every code has the value of its fields, and its sign.
template <class T>
void expect_exact_values(Format format) {
  for (std::uint32_t code = 0; code < format.infinity; ++code) {
    const double value = value_of(format, code);
    ASSERT_EQ(widen<T>(code), value) << code;
    ASSERT_EQ(widen<T>(code | 0x8000u), -value) << code;
    ASSERT_FALSE(std::signbit(widen<T>(code))) << code;
    ASSERT_TRUE(std::signbit(widen<T>(code | 0x8000u))) << code;
  }
  ASSERT_EQ(widen<T>(format.infinity), std::numeric_limits<float>::infinity());
  ASSERT_EQ(widen<T>(format.infinity | 0x8000u),
            -std::numeric_limits<float>::infinity());
}

/// To float and back: unchanged, but that a signalling NaN becomes quiet.
template <class T>
void expect_codes_return(Format format) {
  for (std::uint32_t code = 0; code <= 0xffff; ++code) {
    const bool nan = (code & 0x7fffu) > format.infinity;
    const float value = widen<T>(code);
    ASSERT_EQ(std::isnan(value), nan) << code;
    ASSERT_EQ(T(value).bits, nan ? code | format.quiet : code) << code;
  }
}

template <class T>
void expect_nearest(Format format, float x) {
  ASSERT_EQ(T(x).bits, nearest_code(format, x)) << std::hexfloat << x;
  ASSERT_EQ(T(-x).bits, nearest_code(format, -x)) << std::hexfloat << -x;
}

/// From float, at every code and every midpoint and right beside them.
template <class T>
void expect_nearest_at_borders(Format format) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::uint32_t code = 0; code < format.infinity; ++code) {
    const double low = value_of(format, code);
    const double high = value_of(format, code + 1);
    for (const double border : {low, (low + high) / 2}) {
      const float x = static_cast<float>(border);
      ASSERT_EQ(x, border) << "not a float";
      expect_nearest<T>(format, x);
      expect_nearest<T>(format, std::nextafter(x, infinity));
      if (x > 0) expect_nearest<T>(format, std::nextafter(x, 0.0f));
    }
  }
  expect_nearest<T>(format, infinity);
  expect_nearest<T>(format, std::numeric_limits<float>::max());
  expect_nearest<T>(format, std::numeric_limits<float>::denorm_min());
}

/// From float, all over the range (a stride that is prime to 2^32).
template <class T>
void expect_nearest_everywhere(Format format) {
  for (std::uint64_t bits = 0; bits < 0x7f800000u; bits += 4099)
    expect_nearest<T>(format, float_of(static_cast<std::uint32_t>(bits)));
}

/// NaN stays a quiet NaN with its sign and the upper bits of its payload.
template <class T>
void expect_quiet_nans(Format format) {
  const int lost = 23 - format.fraction_bits;
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (std::uint32_t shift = 0; shift < 23; ++shift) {
      const std::uint32_t payload = 1u << shift;
      const T number(float_of(sign | 0x7f800000u | payload));
      ASSERT_EQ(number.bits, (sign >> 16) | format.infinity | format.quiet |
                                 (payload >> lost))
          << shift;
    }
  }
}

}  // namespace kzero::test
