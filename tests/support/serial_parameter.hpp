// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Rules once more, by the equations of kzero/rule.hpp, for one parameter on one
// rank: in T, operation by operation, so that bits can be compared.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <kzero/rule.hpp>
#include <stdexcept>
#include <variant>
#include <vector>

namespace kzero::test {

template <class T>
struct SerialParameter {
  std::vector<T> p;
  std::vector<T> first = {};   // momentum, or the first moment
  std::vector<T> second = {};  // moment
  std::int64_t t = 0;

  void update(const Rule& rule, const std::vector<T>& g) {
    ++t;
    first.resize(p.size());
    second.resize(p.size());
    std::visit([&](const auto& value) { apply(value, g); }, rule.value());
  }

 private:
  void apply(const AdamW& rule, const std::vector<T>& g) {
    const T step = T(rule.learning_rate / correction(rule.beta1));
    const T root = T(1.0 / std::sqrt(correction(rule.beta2)));
    const T decay = T(1.0 - rule.learning_rate * rule.weight_decay);
    for (std::size_t i = 0; i < p.size(); ++i) {
      take_moments(rule, g[i], i);
      const T below = std::sqrt(second[i]) * root + T(rule.epsilon);
      p[i] = p[i] * decay - step * (first[i] / below);
    }
  }

  void apply(const Sgd& rule, const std::vector<T>& g) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const T slope = g[i] + T(rule.weight_decay) * p[i];
      const T kept = T(rule.momentum) * first[i];
      first[i] = t == 1 ? slope : kept + T(1.0 - rule.dampening) * slope;
      p[i] -= T(rule.learning_rate) * first[i];
    }
  }

  void apply(const Lion& rule, const std::vector<T>& g) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const T c = T(rule.beta1) * first[i] + T(1.0 - rule.beta1) * g[i];
      const T sign = c > T(0) ? T(1) : c < T(0) ? T(-1) : T(0);
      p[i] = p[i] * T(1.0 - rule.learning_rate * rule.weight_decay) -
             T(rule.learning_rate) * sign;
      first[i] = T(rule.beta2) * first[i] + T(1.0 - rule.beta2) * g[i];
    }
  }

  void apply(const Lamb& rule, const std::vector<T>& g) {
    std::vector<T> u(p.size());
    double squares_p = 0.0;
    double squares_u = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      take_moments(rule, g[i], i);
      const T root = T(1.0 / std::sqrt(correction(rule.beta2)));
      const T mean = first[i] * T(1.0 / correction(rule.beta1));
      u[i] = mean / (std::sqrt(second[i]) * root + T(rule.epsilon)) +
             T(rule.weight_decay) * p[i];
      squares_p += double(p[i]) * double(p[i]);
      squares_u += double(u[i]) * double(u[i]);
    }
    const bool plain =
        squares_p == 0.0 || squares_u == 0.0 || rule.weight_decay == 0.0;
    const double ratio =
        plain ? 1.0 : std::sqrt(squares_p) / std::sqrt(squares_u);
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] -= T(rule.learning_rate * ratio) * u[i];
  }

  template <class Other>
  void apply(const Other&, const std::vector<T>&) {
    throw std::logic_error("a rule that is not written out here");
  }

  template <class R>
  void take_moments(const R& rule, T g, std::size_t i) {
    first[i] += T(1.0 - rule.beta1) * (g - first[i]);
    second[i] = T(rule.beta2) * second[i] + (T(1.0 - rule.beta2) * g) * g;
  }

  double correction(double beta) const {
    return 1.0 - std::pow(beta, double(t));
  }
};

/// S(a, b) = S(a, a + k) + S(a + k, b), k the largest power of two below b - a.
template <class T, class Value>
T ordered_sum(int a, int b, const Value& value) {
  if (b - a == 1) return T(value(a));
  int k = 1;
  while (2 * k < b - a) k *= 2;
  return ordered_sum<T>(a, a + k, value) + ordered_sum<T>(a + k, b, value);
}

}  // namespace kzero::test
