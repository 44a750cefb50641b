// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Sixteen elements at once, in as many registers as they take. For host
// kernels alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <kzero/bfloat16.hpp>
#include <kzero/float16.hpp>
#include <kzero/macros.hpp>
#include <type_traits>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace kzero::detail {
namespace {

constexpr int lanes = 16;

#if defined(__AVX512F__)
constexpr std::size_t register_bytes = 64;
constexpr __mmask16 all_lanes = 0xffff;
#elif defined(__AVX__)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif

template <class T, std::size_t size>
struct VectorOf {
  using Type [[gnu::vector_size(size * sizeof(T))]] = T;
};
template <class T, std::size_t size>
using Vector = typename VectorOf<T, size>::Type;

template <class T>
struct Block {
  static constexpr std::size_t size = register_bytes / sizeof(T);
  static constexpr std::size_t registers = lanes / size;
  using Register = Vector<T, size>;

  Register part[registers] = {};

  KZERO_FUNCTION friend Block operator+(const Block& a, const Block& b) {
    Block sum;
    for (std::size_t i = 0; i < registers; ++i)
      sum.part[i] = a.part[i] + b.part[i];
    return sum;
  }

  KZERO_FUNCTION friend Block operator-(const Block& a, const Block& b) {
    Block difference;
    for (std::size_t i = 0; i < registers; ++i)
      difference.part[i] = a.part[i] - b.part[i];
    return difference;
  }

  KZERO_FUNCTION friend Block operator*(const Block& a, const Block& b) {
    Block product;
    for (std::size_t i = 0; i < registers; ++i)
      product.part[i] = a.part[i] * b.part[i];
    return product;
  }

  KZERO_FUNCTION friend Block operator*(const Block& a, T b) {
    Block product;
    for (std::size_t i = 0; i < registers; ++i) product.part[i] = a.part[i] * b;
    return product;
  }
};

/// -1 in the lanes where a is 0, else 0.
template <class T>
KZERO_FUNCTION auto is_zero(const Block<T>& a) {
  using Integer = std::conditional_t<sizeof(T) == 8, long long, int>;
  Block<Integer> result;
  for (std::size_t i = 0; i < result.registers; ++i)
    result.part[i] = a.part[i] == T(0);
  return result;
}

/// The lanes' sum: the upper half is added to the lower one until one is left.
template <class T, std::size_t size>
KZERO_FUNCTION T add_lanes(const Vector<T, size>& vector) {
  if constexpr (size == 1) {
    return vector[0];
  } else {
    Vector<T, size / 2> half[2];
    std::memcpy(half, &vector, sizeof(half));
    return add_lanes<T, size / 2>(half[0] + half[1]);
  }
}

template <class T>
KZERO_FUNCTION T add_lanes(Block<T> block) {
  for (std::size_t width = block.registers / 2; width > 0; width /= 2)
    for (std::size_t i = 0; i < width; ++i)
      block.part[i] += block.part[i + width];
  return add_lanes<T, Block<T>::size>(block.part[0]);
}

/// The first count lanes of a block, 0 in the others.
template <class T>
KZERO_FUNCTION Block<T> front(const Block<T>& block, int count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    Block<T> kept;
    kept.part[0] = (Vector<T, 16>)_mm512_maskz_mov_ps(
        static_cast<__mmask16>((1u << count) - 1u), (__m512)block.part[0]);
    return kept;
  }
#endif
  T values[lanes];
  std::memcpy(values, block.part, sizeof(values));
  for (int lane = count; lane < lanes; ++lane) values[lane] = T(0);
  Block<T> result;
  std::memcpy(result.part, values, sizeof(values));
  return result;
}

/// Both halves of a register, twice as wide.
KZERO_FUNCTION void widen(const Block<float>::Register& from,
                          Block<double>::Register* to) {
#if defined(__AVX512F__)
  constexpr __mmask8 all = 0xff;
  to[0] =
      _mm512_maskz_cvtps_pd(all, _mm512_maskz_extractf32x8_ps(all, from, 0));
  to[1] =
      _mm512_maskz_cvtps_pd(all, _mm512_maskz_extractf32x8_ps(all, from, 1));
#elif defined(__AVX__)
  to[0] =
      _mm256_cvtps_pd((__m128)__builtin_shufflevector(from, from, 0, 1, 2, 3));
  to[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(from, 1));
#else
  Vector<float, Block<double>::size> half[2];
  std::memcpy(half, &from, sizeof(half));
  for (int i = 0; i < 2; ++i)
    to[i] = __builtin_convertvector(half[i], Block<double>::Register);
#endif
}

KZERO_FUNCTION Block<double> to_double(const Block<float>& block) {
  Block<double> wide;
  for (std::size_t i = 0; i < block.registers; ++i)
    widen(block.part[i], wide.part + 2 * i);
  return wide;
}

KZERO_FUNCTION Block<double> to_double(const Block<double>& block) {
  return block;
}

template <class To, class From>
KZERO_FUNCTION Block<To> convert_block(const Block<From>& block) {
  if constexpr (std::is_same_v<To, From>) {
    return block;
  } else if constexpr (std::is_same_v<To, double>) {
    return to_double(block);
  } else {
    From from[lanes];
    To to[lanes];
    std::memcpy(from, block.part, sizeof(from));
    for (int lane = 0; lane < lanes; ++lane)
      to[lane] = static_cast<To>(from[lane]);
    Block<To> result;
    std::memcpy(result.part, to, sizeof(to));
    return result;
  }
}

/// The same number, of which the compiler knows nothing: it would write loops
/// of a few blocks out.
KZERO_FUNCTION std::int64_t opaque(std::int64_t number) {
  asm("" : "+r"(number));
  return number;
}

}  // namespace
}  // namespace kzero::detail
