// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// float32 to 16 bits by the processor's instructions, where they are faster
// than the loop that the compiler makes of the conversion: the same bits. For
// host kernels alone.
#pragma once

#include <cstdint>
#include <kzero/bfloat16.hpp>
#include <kzero/float16.hpp>

#include "kernels/host/block_access.hpp"

namespace kzero::detail {
namespace {

template <class T>
constexpr bool has_narrow_blocks = false;

#ifdef __F16C__

template <>
constexpr bool has_narrow_blocks<float16> = true;

constexpr int nearest_even = _MM_FROUND_TO_NEAREST_INT;

KZERO_FUNCTION void narrow_block(const float* from, float16* to) {
#if defined(__AVX512F__)
  const __m256i codes =
      _mm512_maskz_cvtps_ph(all_lanes, _mm512_loadu_ps(from), nearest_even);
  std::memcpy(&to->bits, &codes, sizeof(codes));
#else
  for (int i = 0; i < 2; ++i) {
    const __m128i codes =
        _mm256_cvtps_ph(_mm256_loadu_ps(from + 8 * i), nearest_even);
    std::memcpy(&to[8 * i].bits, &codes, sizeof(codes));
  }
#endif
}

#endif

#if defined(__AVX2__) && !defined(__AVX512F__)

template <>
constexpr bool has_narrow_blocks<bfloat16> = true;

/// As bfloat16 rounds.
KZERO_FUNCTION __m256i rounded_bits(const float* from) {
  const __m256 value = _mm256_loadu_ps(from);
  const __m256i bits = (__m256i)value;
  const __m256i odd =
      _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
  return _mm256_srli_epi32(
      (__m256i)_mm256_blendv_ps((__m256)rounded, (__m256)quiet, nan), 16);
}

KZERO_FUNCTION void narrow_block(const float* from, bfloat16* to) {
  const __m256i mixed =
      _mm256_packus_epi32(rounded_bits(from), rounded_bits(from + 8));
  const __m256i codes = _mm256_permute4x64_epi64(mixed, 0xd8);
  std::memcpy(&to->bits, &codes, sizeof(codes));
}

#endif

#if defined(__AVX512F__)

template <>
constexpr bool has_narrow_blocks<bfloat16> = true;

/// As bfloat16 rounds.
KZERO_FUNCTION void narrow_block(const float* from, bfloat16* to) {
  using Bits = Vector<std::uint32_t, lanes>;
  const __m512 value = _mm512_loadu_ps(from);
  const Bits bits = (Bits)value;
  const Bits rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i chosen =
      _mm512_mask_mov_epi32((__m512i)rounded, nan, (__m512i)(bits | 0x400000u));
  const __m256i codes =
      _mm512_maskz_cvtepi32_epi16(all_lanes, (__m512i)((Bits)chosen >> 16));
  std::memcpy(&to->bits, &codes, sizeof(codes));
}

#endif

/// count is a multiple of 16.
template <class T>
KZERO_FUNCTION void narrow_blocks(const float* from, T* to,
                                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += lanes)
    narrow_block(from + i, to + i);
}

}  // namespace
}  // namespace kzero::detail
