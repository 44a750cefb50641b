// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Products in every form, of small integers: each result is exact.
#include "kernels/blas.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kzero::detail {
namespace {

/// Element (i, k) of a factor that has rows x columns elements when op() has
/// been applied.
template <class T>
T element(const std::vector<T>& values, Form form, std::int64_t rows,
          std::int64_t columns, std::int64_t i, std::int64_t k) {
  return values[static_cast<std::size_t>(form == Form::plain ? i * columns + k
                                                             : k * rows + i)];
}

template <class T>
std::vector<T> integers(std::int64_t count, int seed) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<T>((i * 7 + seed) % 11 - 5));
  return values;
}

template <class T>
void check(std::int64_t rows, std::int64_t columns, std::int64_t inner,
           Form a_form, Form b_form) {
  SCOPED_TRACE(testing::Message() << rows << " x " << columns << " by " << inner
                                  << ", forms " << int(a_form) << int(b_form));
  const auto a = integers<T>(rows * inner, 1);
  const auto b = integers<T>(inner * columns, 2);
  auto c = integers<T>(rows * columns, 3);
  std::vector<T> expected;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      T sum = T(0);
      for (std::int64_t k = 0; k < inner; ++k)
        sum += element(a, a_form, rows, inner, i, k) *
               element(b, b_form, inner, columns, k, j);
      expected.push_back(T(2) * sum -
                         T(3) * c[static_cast<std::size_t>(i * columns + j)]);
    }
  Product<T> product{.rows = rows, .columns = columns, .inner = inner};
  product.alpha = T(2);
  product.a = a.data();
  product.a_form = a_form;
  product.b = b.data();
  product.b_form = b_form;
  product.beta = T(-3);
  product.c = c.data();
  multiply(product);
  EXPECT_EQ(c, expected);
}

template <class T>
void check_all() {
  constexpr std::int64_t sizes[] = {1, 2, 5, 17, 40};
  for (const std::int64_t rows : sizes)
    for (const std::int64_t columns : sizes)
      for (const std::int64_t inner : sizes)
        for (const Form a_form : {Form::plain, Form::transposed})
          for (const Form b_form : {Form::plain, Form::transposed})
            check<T>(rows, columns, inner, a_form, b_form);
}

TEST(Blas, MultipliesInEveryForm) {
  check_all<float>();
  check_all<double>();
}

}  // namespace
}  // namespace kzero::detail
