// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The number types of parameters and gradients, known at run time.
#pragma once

#include <cstdint>
#include <kzero/bfloat16.hpp>
#include <kzero/error.hpp>
#include <kzero/float16.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kzero {

enum class DType : std::uint8_t { float16, bfloat16, float32, float64 };

/// Bytes of one element.
constexpr std::int64_t size_of(DType dtype) {
  return dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
}

/// "float16", "bfloat16", "float32" or "float64".
constexpr std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
  }
  return "unknown";
}

/// Type of the main (master) parameters, of the moments and of the averaged
/// gradient: float64 for float64 parameters, float32 for all others.
constexpr DType main_dtype(DType dtype) {
  return dtype == DType::float64 ? DType::float64 : DType::float32;
}

template <class T>
concept Element = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> ||
    std::is_same_v<T, float> || std::is_same_v<T, double>;

/// The DType of a C++ element type.
template <Element T>
inline constexpr DType dtype_of =
    std::is_same_v<T, float16>    ? DType::float16
    : std::is_same_v<T, bfloat16> ? DType::bfloat16
    : std::is_same_v<T, float>    ? DType::float32
                                  : DType::float64;

/// Calls f(std::type_identity<T>{}) with the C++ type of dtype.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float16:
      return std::forward<F>(f)(std::type_identity<float16>{});
    case DType::bfloat16:
      return std::forward<F>(f)(std::type_identity<bfloat16>{});
    case DType::float32:
      return std::forward<F>(f)(std::type_identity<float>{});
    case DType::float64:
      return std::forward<F>(f)(std::type_identity<double>{});
  }
  throw InvalidArgument(
      "unknown number type (expected a code from 0 to 3, got " +
      std::to_string(static_cast<int>(dtype)) + "): use a DType");
}

}  // namespace kzero
