// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Blocks from memory and back, of all types: the first count elements, 0 for
// the others. For host kernels alone.
#pragma once

#include <utility>

#include "kernels/host/blocks.hpp"

namespace kzero::detail {
namespace {

// Written out for each register: the compilers may keep loops over copies.
template <class T, std::size_t... i>
KZERO_FUNCTION Block<T> load_whole(const T* from, std::index_sequence<i...>) {
  Block<T> block;
  (std::memcpy(&block.part[i], from + i * block.size, register_bytes), ...);
  return block;
}

template <class T, std::size_t... i>
KZERO_FUNCTION void store_whole(const Block<T>& block, T* to,
                                std::index_sequence<i...>) {
  (std::memcpy(to + i * block.size, &block.part[i], register_bytes), ...);
}

template <class T>
constexpr auto registers = std::make_index_sequence<Block<T>::registers>();

template <class T>
KZERO_FUNCTION Block<T> load_values(const T* from, int count) {
  if (count == lanes) return load_whole(from, registers<T>);
  Block<T> block;
#if defined(__AVX512F__)
  const auto mask = static_cast<__mmask16>((1u << count) - 1u);
  if constexpr (sizeof(T) == 4) {
    block.part[0] = (Vector<T, 16>)_mm512_maskz_loadu_epi32(mask, from);
    return block;
  } else if constexpr (sizeof(T) == 8) {
    for (int i = 0; i < 2; ++i)
      block.part[i] = (Vector<T, 8>)_mm512_maskz_loadu_epi64(
          static_cast<__mmask8>(mask >> (8 * i)), from + 8 * i);
    return block;
  }
#endif
  T values[lanes] = {};
  for (int lane = 0; lane < count; ++lane) values[lane] = from[lane];
  std::memcpy(block.part, values, sizeof(block.part));
  return block;
}

template <class T>
KZERO_FUNCTION void store(const Block<T>& block, T* to, int count) {
  if (count == lanes) return store_whole(block, to, registers<T>);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const auto mask = static_cast<__mmask16>((1u << count) - 1u);
    _mm512_mask_storeu_epi32(to, mask, (__m512i)block.part[0]);
    return;
  } else if constexpr (sizeof(T) == 8) {
    const unsigned mask = (1u << count) - 1u;
    for (int i = 0; i < 2; ++i)
      _mm512_mask_storeu_epi64(to + 8 * i,
                               static_cast<__mmask8>(mask >> (8 * i)),
                               (__m512i)block.part[i]);
    return;
  }
#endif
  T values[lanes];
  std::memcpy(values, block.part, sizeof(block));
  for (int lane = 0; lane < count; ++lane) to[lane] = values[lane];
}

/// The first count elements, and the first again for the others.
template <class T>
KZERO_FUNCTION Block<T> load_repeated(const T* from, int count) {
  Block<T> block;
#if defined(__AVX512F__)
  const unsigned mask = (1u << count) - 1u;
  if constexpr (sizeof(T) == 4) {
    block.part[0] = (Vector<T, 16>)_mm512_mask_loadu_ps(
        _mm512_set1_ps(*from), static_cast<__mmask16>(mask), from);
  } else {
    for (int i = 0; i < 2; ++i)
      block.part[i] = (Vector<T, 8>)_mm512_mask_loadu_pd(
          _mm512_set1_pd(*from), static_cast<__mmask8>(mask >> (8 * i)),
          from + 8 * i);
  }
#else
  T values[lanes];
  for (int lane = 0; lane < lanes; ++lane)
    values[lane] = from[lane < count ? lane : 0];
  std::memcpy(block.part, values, sizeof(values));
#endif
  return block;
}

/// Those of 16 bits, from an array of whole blocks.
template <class T>
KZERO_FUNCTION void copy_codes(const T* from, T* to, int count) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<__mmask16>((1u << count) - 1u);
  __m256i codes;
  std::memcpy(&codes, from, sizeof(codes));
  _mm256_mask_storeu_epi16(to, mask, codes);
#else
  for (int lane = 0; lane < count; ++lane) to[lane] = from[lane];
#endif
}

/// As many codes of 16 bits as a register takes when they have 32.
struct Codes {
#if defined(__AVX512F__)
  using Part = __m256i;
#else
  using Part = Vector<std::uint16_t, Block<float>::size>;
#endif
  Part part[Block<float>::registers];
};

template <class T, std::size_t... i>
KZERO_FUNCTION Codes load_whole_codes(const T* from,
                                      std::index_sequence<i...>) {
  Codes codes;
  (std::memcpy(&codes.part[i], from + i * Block<float>::size,
               sizeof(codes.part[i])),
   ...);
  return codes;
}

template <class T>
KZERO_FUNCTION Codes load_codes(const T* from, int count) {
  if (count == lanes) return load_whole_codes(from, registers<float>);
  Codes codes;
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<__mmask16>((1u << count) - 1u);
  codes.part[0] = _mm256_maskz_loadu_epi16(mask, from);
#else
  std::uint16_t values[lanes] = {};
  for (int lane = 0; lane < count; ++lane) values[lane] = from[lane].bits;
  std::memcpy(codes.part, values, sizeof(values));
#endif
  return codes;
}

#ifndef __F16C__
KZERO_FUNCTION Block<std::uint32_t>::Register widen(const Codes::Part& codes) {
#if defined(__SSE2__)
  long long bits;
  std::memcpy(&bits, &codes, sizeof(bits));
  return (Block<std::uint32_t>::Register)_mm_unpacklo_epi16(
      _mm_cvtsi64_si128(bits), _mm_setzero_si128());
#else
  return __builtin_convertvector(codes, Block<std::uint32_t>::Register);
#endif
}

/// As float16 converts.
KZERO_FUNCTION Block<float>::Register to_float(
    const Block<std::uint32_t>::Register& code) {
  using Float = Block<float>::Register;
  using Bits = Block<std::uint32_t>::Register;
  const Bits shifted = (code & 0x7fffu) << 13;
  const Bits exponent = shifted & 0x0f800000u;
  const Bits subnormal = (Bits)((Float)(shifted + (113u << 23)) - 0x1p-14f);
  const Bits finite = exponent == 0u ? subnormal : shifted + (112u << 23);
  const Bits magnitude =
      exponent == 0x0f800000u ? shifted + (224u << 23) : finite;
  return (Float)(magnitude | ((code & 0x8000u) << 16));
}
#endif

KZERO_FUNCTION Block<float> load(const float* from, int count) {
  return load_values(from, count);
}

KZERO_FUNCTION Block<double> load(const double* from, int count) {
  return load_values(from, count);
}

KZERO_FUNCTION Block<float> load(const bfloat16* from, int count) {
  const Codes codes = load_codes(from, count);
  Block<float> block;
  for (std::size_t i = 0; i < block.registers; ++i) {
#if defined(__AVX512F__)
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(all_lanes, codes.part[i]);
    block.part[i] = (__m512)_mm512_maskz_slli_epi32(all_lanes, wide, 16);
#elif defined(__AVX2__)
    const __m256i wide = _mm256_cvtepu16_epi32((__m128i)codes.part[i]);
    block.part[i] = (__m256)_mm256_slli_epi32(wide, 16);
#else
    block.part[i] = (Block<float>::Register)(widen(codes.part[i]) << 16);
#endif
  }
  return block;
}

/// A NaN comes out quiet.
KZERO_FUNCTION Block<float> load(const float16* from, int count) {
  const Codes codes = load_codes(from, count);
  Block<float> block;
  for (std::size_t i = 0; i < block.registers; ++i) {
#if defined(__AVX512F__)
    block.part[i] = _mm512_maskz_cvtph_ps(all_lanes, codes.part[i]);
#elif defined(__F16C__)
    block.part[i] = _mm256_cvtph_ps((__m128i)codes.part[i]);
#else
    block.part[i] = to_float(widen(codes.part[i]));
#endif
  }
  return block;
}

}  // namespace
}  // namespace kzero::detail
