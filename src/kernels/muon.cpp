// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "kernels/muon.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/blas.hpp"

namespace kzero::detail {
namespace {

constexpr int iterations = 5;
constexpr double coefficients[] = {3.4445, -4.7750, 2.0315};
constexpr double smallest_norm = 1e-7;

// Whole cache lines, so that each array in the work memory starts on one.
std::int64_t padded(std::int64_t elements) { return (elements + 15) / 16 * 16; }

// In double, in 16 lanes and so in one order for every compiler.
template <class T>
double norm_of(const T* values, std::int64_t count) {
  constexpr std::int64_t lanes = 16;
  std::array<double, lanes> squares = {};
  for (std::int64_t begin = 0; begin < count; begin += lanes) {
    const std::int64_t end = std::min(lanes, count - begin);
    for (std::int64_t lane = 0; lane < end; ++lane) {
      const double value = static_cast<double>(values[begin + lane]);
      squares[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  double sum = 0.0;
  for (const double each : squares) sum += each;
  return std::sqrt(sum);
}

/// The arrays of an update. There are two of X, since a product cannot be
/// written over its factors.
template <class T>
struct Work {
  T* x;
  T* next;
  T* gram;        // A
  T* polynomial;  // -4.7750*A + 2.0315*A*A
};

// A matrix of more rows than columns is not transposed: all products are those
// of its transpose, transposed.
template <class T>
void orthogonalize(Work<T>& work, std::int64_t rows, std::int64_t columns) {
  const bool tall = rows > columns;
  const std::int64_t small = std::min(rows, columns);
  const std::int64_t large = std::max(rows, columns);
  const T c0 = static_cast<T>(coefficients[0]);
  const T c1 = static_cast<T>(coefficients[1]);
  const T c2 = static_cast<T>(coefficients[2]);
  for (int i = 0; i < iterations; ++i) {
    Product<T> gram{.rows = small, .columns = small, .inner = large};
    gram.a = gram.b = work.x;
    (tall ? gram.a_form : gram.b_form) = Form::transposed;
    gram.c = work.gram;
    multiply(gram);

    std::copy_n(work.gram, small * small, work.polynomial);
    Product<T> square{.rows = small, .columns = small, .inner = small};
    square.alpha = c2;
    square.a = square.b = work.gram;
    square.beta = c1;
    square.c = work.polynomial;
    multiply(square);

    std::copy_n(work.x, rows * columns, work.next);
    Product<T> product{.rows = rows, .columns = columns, .inner = small};
    product.a = tall ? work.x : work.polynomial;
    product.b = tall ? work.polynomial : work.x;
    if (tall) product.b_form = Form::transposed;
    product.beta = c0;
    product.c = work.next;
    multiply(product);
    std::swap(work.x, work.next);
  }
}

template <class T>
void update(const MatrixTask& task) {
  const MuonStep& step = *static_cast<const MuonStep*>(task.step);
  const std::int64_t size = task.rows * task.columns;
  const std::int64_t small = std::min(task.rows, task.columns);
  Work<T> work = {};
  work.x = static_cast<T*>(task.work);
  work.next = work.x + padded(size);
  work.gram = work.next + padded(size);
  work.polynomial = work.gram + padded(small * small);

  const T* const gradient = static_cast<const T*>(task.gradient);
  T* const buffer = static_cast<T*>(task.state[0]);
  const T factor = static_cast<T>(task.gradient_factor);
  const T momentum = static_cast<T>(step.momentum);
  for (std::int64_t i = 0; i < size; ++i) {
    const T g = gradient[i] * factor;
    buffer[i] = momentum * buffer[i] + g;
    work.x[i] = step.nesterov ? g + momentum * buffer[i] : buffer[i];
  }

  const double norm = norm_of(work.x, size) + smallest_norm;
  for (std::int64_t i = 0; i < size; ++i)
    work.x[i] = static_cast<T>(static_cast<double>(work.x[i]) / norm);
  orthogonalize(work, task.rows, task.columns);

  const double ratio =
      static_cast<double>(task.rows) / static_cast<double>(task.columns);
  const T decay = static_cast<T>(1.0 - step.learning_rate * step.weight_decay);
  const T move =
      static_cast<T>(step.learning_rate * std::sqrt(std::max(1.0, ratio)));
  T* const main = static_cast<T*>(task.main);
  for (std::int64_t i = 0; i < size; ++i)
    main[i] = main[i] * decay - move * work.x[i];
}

}  // namespace

const std::array<MatrixFunction, 2> muon_functions = {update<float>,
                                                      update<double>};

std::int64_t muon_work_elements(std::int64_t rows, std::int64_t columns) {
  const std::int64_t small = std::min(rows, columns);
  return 2 * padded(rows * columns) + 2 * padded(small * small);
}

}  // namespace kzero::detail
