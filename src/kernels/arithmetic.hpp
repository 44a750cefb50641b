// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The update rules for one element: the one place where their arithmetic
// stands, for host loops and device kernels alike. Compile without FMA
// contraction. Equations: include/kzero/rule.hpp.
#pragma once

#include <math.h>

#include <kzero/macros.hpp>

namespace kzero::detail {

KZERO_FUNCTION float square_root(float x) { return ::sqrtf(x); }
KZERO_FUNCTION double square_root(double x) { return ::sqrt(x); }

/// A step is prepared once for all parameters of a group that have the same
/// update count; T is float or double. Called with the averaged gradient g,
/// already clipped and with its sign turned for maximize, the main parameter p
/// and the state arrays' elements s.
template <class T>
struct AdamWStep {
  static constexpr int state_arrays = 2;
  T decay;  // 1 - lr*wd
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T step_size;                // lr/(1 - beta1^t)
  T inverse_root_correction;  // 1/sqrt(1 - beta2^t)
  T epsilon;

  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    const T v = moments(g, s);
    move(v, p, s);
  }

 protected:
  KZERO_FUNCTION T moments(T g, T* s) const {
    s[0] += one_minus_beta1 * (g - s[0]);
    s[1] = beta2 * s[1] + (one_minus_beta2 * g) * g;
    return s[1];
  }

  KZERO_FUNCTION void move(T v, T& p, const T* s) const {
    const T denominator = square_root(v) * inverse_root_correction + epsilon;
    p = p * decay - step_size * (s[0] / denominator);
  }
};

template <class T>
struct AmsgradStep : AdamWStep<T> {
  static constexpr int state_arrays = 3;

  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    const T v = this->moments(g, s);
    s[2] = s[2] > v ? s[2] : v;
    this->move(s[2], p, s);
  }
};

/// mu = 0.
template <class T>
struct SgdStep {
  static constexpr int state_arrays = 0;
  T learning_rate;
  T weight_decay;

  KZERO_FUNCTION void operator()(T g, T& p, T*) const {
    p -= learning_rate * (g + weight_decay * p);
  }
};

template <class T>
struct MomentumStep {
  static constexpr int state_arrays = 1;
  T learning_rate;
  T weight_decay;
  T keep;             // momentum; 0 at the first update
  T take;             // 1 - dampening; 1 at the first update
  T gradient_weight;  // nesterov: g + mu*buf, else buf
  T buffer_weight;

  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    g += weight_decay * p;
    s[0] = keep * s[0] + take * g;
    p -= learning_rate * (gradient_weight * g + buffer_weight * s[0]);
  }
};

}  // namespace kzero::detail
