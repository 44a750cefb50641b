// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The 16-bit float of IEEE 754 (binary16): 5 exponent and 10 fraction bits.
#pragma once

#include <cstdint>
#include <kzero/bfloat16.hpp>
#include <kzero/macros.hpp>

namespace kzero {

/// Storage type of 2 bytes with exact conversions; arithmetic is done in
/// float. From float: round to nearest, ties to even; NaN stays a (quiet) NaN,
/// infinities stay, values that round past 65504 become infinity, subnormals
/// are kept. To float: exact. Only integer arithmetic and operations on normal
/// floats are used, so that flush-to-zero modes change nothing.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;

  KZERO_FUNCTION constexpr explicit float16(float value)
      : bits(round(detail::float_bits(value))) {}

  KZERO_FUNCTION constexpr operator float() const {
    // Shifted left by 13 the exponent lacks the difference of the biases, 112;
    // infinities and NaN lack it twice. A subnormal is h * 2^-24: give it the
    // exponent of 2^-14 and subtract that number, which is exact.
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t shifted = static_cast<std::uint32_t>(bits & 0x7fffu)
                                  << 13;
    const std::uint32_t exponent = shifted & 0x0f800000u;
    const std::uint32_t normal = shifted + (112u << 23);
    const std::uint32_t special = shifted + (224u << 23);
    const std::uint32_t subnormal = detail::float_bits(
        detail::bits_float(shifted + (113u << 23)) - 0x1p-14f);
    const std::uint32_t magnitude = exponent == 0x0f800000u ? special
                                    : exponent == 0u        ? subnormal
                                                            : normal;
    return detail::bits_float(magnitude | sign);
  }

 private:
  KZERO_FUNCTION static constexpr std::uint16_t round(std::uint32_t x) {
    const std::uint32_t sign = (x >> 16) & 0x8000u;
    const std::uint32_t magnitude = x & 0x7fffffffu;
    // Normal results: rebias, round to nearest even on the 13 lost bits.
    // Whatever rounds past the largest finite value ends at or above the code
    // of infinity and is cut to it.
    const std::uint32_t rebased = magnitude - (112u << 23);
    const std::uint32_t rounded =
        (rebased + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const std::uint32_t normal = rounded > 0x7c00u ? 0x7c00u : rounded;
    // Below 2^-14: adding 0.5 leaves the result, rounded to nearest even in
    // units of 2^-24, in the low bits. Tiny values add nothing.
    const std::uint32_t subnormal =
        detail::float_bits(detail::bits_float(magnitude) + 0.5f) - 0x3f000000u;
    const std::uint32_t nan = 0x7e00u | ((x >> 13) & 0x3ffu);
    const std::uint32_t result = magnitude > 0x7f800000u    ? nan
                                 : magnitude >= 0x47800000u ? 0x7c00u
                                 : magnitude < 0x38800000u  ? subnormal
                                                            : normal;
    return static_cast<std::uint16_t>(result | sign);
  }
};

static_assert(sizeof(float16) == 2);

}  // namespace kzero
