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

/// A step with weight decay added to the gradient.
template <template <class> class Step, class T>
struct WithDecay : Step<T> {
  T weight_decay;

  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    g += weight_decay * p;
    Step<T>::operator()(g, p, s);
  }
};

/// Of AdamW with decay = 1.
template <class T>
using AdamStep = WithDecay<AdamWStep, T>;
template <class T>
using AdamAmsgradStep = WithDecay<AmsgradStep, T>;

template <class T>
struct AdagradStep {
  static constexpr int state_arrays = 1;
  T step_size;  // lr/(1 + (t-1)*lr_decay)
  T weight_decay;
  T keep;   // 1; 0 at the first update
  T start;  // 0; initial_accumulator_value at the first update
  T epsilon;

  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    g += weight_decay * p;
    s[0] = (keep * s[0] + start) + g * g;
    p -= step_size * (g / (square_root(s[0]) + epsilon));
  }
};

template <bool centered, bool with_momentum, class T>
struct RmsPropStep {
  static constexpr int state_arrays =
      1 + (centered ? 1 : 0) + (with_momentum ? 1 : 0);
  T learning_rate;
  T weight_decay;
  T alpha;
  T one_minus_alpha;
  T epsilon;
  T momentum;

  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    g += weight_decay * p;
    s[0] = alpha * s[0] + (one_minus_alpha * g) * g;
    T square = s[0];
    if constexpr (centered) {
      s[1] = alpha * s[1] + one_minus_alpha * g;
      square -= s[1] * s[1];
      // A variance, but for rounding; what is NaN stays so.
      square = square < T(0) ? T(0) : square;
    }
    T change = g / (square_root(square) + epsilon);
    if constexpr (with_momentum) {
      T& buffer = s[state_arrays - 1];
      buffer = momentum * buffer + change;
      change = buffer;
    }
    p -= learning_rate * change;
  }
};

template <class T>
using RmsPropPlainStep = RmsPropStep<false, false, T>;
template <class T>
using RmsPropMomentumStep = RmsPropStep<false, true, T>;
template <class T>
using RmsPropCenteredStep = RmsPropStep<true, false, T>;
template <class T>
using RmsPropCenteredMomentumStep = RmsPropStep<true, true, T>;

template <class T>
struct LionStep {
  static constexpr int state_arrays = 1;
  T learning_rate;
  T decay;  // 1 - lr*wd
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;

  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    const T c = beta1 * s[0] + one_minus_beta1 * g;
    // Neither above nor below 0: zero, or NaN, which must be seen.
    p = p * decay - (c > T(0) ? learning_rate : c < T(0) ? -learning_rate : c);
    s[0] = beta2 * s[0] + one_minus_beta2 * g;
  }
};

/// The first pass takes in the gradient (moments) and sums up the squares of p
/// and of the direction; the second is LambMove.
template <class T>
struct LambStep {
  static constexpr int state_arrays = 2;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T inverse_correction;       // 1/(1 - beta1^t)
  T inverse_root_correction;  // 1/sqrt(1 - beta2^t)
  T epsilon;
  T weight_decay;
  double learning_rate;

  KZERO_FUNCTION void moments(T g, T* s) const {
    s[0] += one_minus_beta1 * (g - s[0]);
    s[1] = beta2 * s[1] + (one_minus_beta2 * g) * g;
  }

  /// The same bits in both passes.
  KZERO_FUNCTION T direction(T p, const T* s) const {
    const T denominator = square_root(s[1]) * inverse_root_correction + epsilon;
    return (s[0] * inverse_correction) / denominator + weight_decay * p;
  }
};

/// Called without a gradient.
template <class T>
struct LambMove {
  LambStep<T> step;
  T step_size;  // lr times the trust ratio

  KZERO_FUNCTION void operator()(T& p, const T* s) const {
    p -= step_size * step.direction(p, s);
  }
};

}  // namespace kzero::detail
