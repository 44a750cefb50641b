// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Products of matrices, from BLAS. They may be taken in any thread.
#pragma once

#include <cstdint>
#include <limits>

namespace kzero::detail {

/// BLAS counts rows and columns with int.
inline constexpr std::int64_t most_rows = std::numeric_limits<int>::max();

enum class Form { plain, transposed };

/// c = alpha * op(a) op(b) + beta * c, all in C order without gaps: c has rows
/// x columns elements, op(a) rows x inner, op(b) inner x columns; every number
/// is from 1 to most_rows. a is stored as it is or transposed, so is b. c
/// overlaps neither.
template <class T>
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  T alpha = T(1);
  const T* a = nullptr;
  Form a_form = Form::plain;
  const T* b = nullptr;
  Form b_form = Form::plain;
  T beta = T(0);
  T* c = nullptr;
};

void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

}  // namespace kzero::detail
