// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Muon once more, in float64 and in plain loops, by the equations of
// kzero/rule.hpp: with the transposition that the library leaves out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <kzero/rule.hpp>
#include <vector>

namespace kzero::test {

/// In C order.
struct PlainMatrix {
  PlainMatrix(std::size_t rows_, std::size_t columns_)
      : rows(rows_), columns(columns_), values(rows * columns) {}
  double& operator()(std::size_t i, std::size_t j) {
    return values[i * columns + j];
  }
  double operator()(std::size_t i, std::size_t j) const {
    return values[i * columns + j];
  }

  std::size_t rows;
  std::size_t columns;
  std::vector<double> values;
};

inline PlainMatrix transposed(const PlainMatrix& a) {
  PlainMatrix t(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.columns; ++j) t(j, i) = a(i, j);
  return t;
}

inline PlainMatrix product(const PlainMatrix& a, const PlainMatrix& b) {
  PlainMatrix c(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t k = 0; k < a.columns; ++k)
      for (std::size_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

/// a*x + b*y.
inline PlainMatrix combined(double a, const PlainMatrix& x, double b,
                            const PlainMatrix& y) {
  PlainMatrix c(x.rows, x.columns);
  for (std::size_t i = 0; i < x.values.size(); ++i)
    c.values[i] = a * x.values[i] + b * y.values[i];
  return c;
}

inline PlainMatrix orthogonalized(PlainMatrix x) {
  double squares = 0.0;
  for (const double each : x.values) squares += each * each;
  for (double& each : x.values) each /= std::sqrt(squares) + 1e-7;
  const bool tall = x.rows > x.columns;
  if (tall) x = transposed(x);
  for (int i = 0; i < 5; ++i) {
    const PlainMatrix a = product(x, transposed(x));
    const PlainMatrix b = combined(-4.7750, a, 2.0315, product(a, a));
    x = combined(3.4445, x, 1.0, product(b, x));
  }
  return tall ? transposed(x) : x;
}

/// A parameter and its momentum.
struct MuonOracle {
  MuonOracle(std::size_t rows, std::size_t columns)
      : parameter(rows, columns), buffer(rows, columns) {}

  void update(const Muon& rule, PlainMatrix gradient) {
    if (rule.maximize)
      for (double& each : gradient.values) each = -each;
    buffer = combined(rule.momentum, buffer, 1.0, gradient);
    const PlainMatrix x = orthogonalized(
        rule.nesterov ? combined(1.0, gradient, rule.momentum, buffer)
                      : buffer);
    const double ratio = double(parameter.rows) / double(parameter.columns);
    parameter =
        combined(1.0 - rule.learning_rate * rule.weight_decay, parameter,
                 -rule.learning_rate * std::sqrt(std::max(1.0, ratio)), x);
  }

  PlainMatrix parameter;
  PlainMatrix buffer;
};

}  // namespace kzero::test
