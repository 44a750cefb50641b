// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "kernels/blas.hpp"

#include <cstddef>

// The Fortran functions, which every BLAS has; the lengths of the texts come
// last.
extern "C" {
void sgemm_(const char* a_form, const char* b_form, const int* rows,
            const int* columns, const int* inner, const float* alpha,
            const float* a, const int* a_stride, const float* b,
            const int* b_stride, const float* beta, float* c,
            const int* c_stride, std::size_t a_form_length,
            std::size_t b_form_length);
void dgemm_(const char* a_form, const char* b_form, const int* rows,
            const int* columns, const int* inner, const double* alpha,
            const double* a, const int* a_stride, const double* b,
            const int* b_stride, const double* beta, double* c,
            const int* c_stride, std::size_t a_form_length,
            std::size_t b_form_length);
}

namespace kzero::detail {
namespace {

// What lies in C order is the transpose in Fortran's: c' = op(b)' op(a)'.
template <class T, class Function>
void multiply_with(Function gemm, const Product<T>& product) {
  const auto letter = [](Form form) { return form == Form::plain ? 'N' : 'T'; };
  const char first = letter(product.b_form);
  const char second = letter(product.a_form);
  const int rows = static_cast<int>(product.rows);
  const int columns = static_cast<int>(product.columns);
  const int inner = static_cast<int>(product.inner);
  const int a_stride = product.a_form == Form::plain ? inner : rows;
  const int b_stride = product.b_form == Form::plain ? columns : inner;
  gemm(&first, &second, &columns, &rows, &inner, &product.alpha, product.b,
       &b_stride, product.a, &a_stride, &product.beta, product.c, &columns, 1,
       1);
}

}  // namespace

void multiply(const Product<float>& product) { multiply_with(sgemm_, product); }

void multiply(const Product<double>& product) {
  multiply_with(dgemm_, product);
}

}  // namespace kzero::detail
