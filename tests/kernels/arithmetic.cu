// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Compiled only, where nvcc is found: a device kernel uses the rules'
// arithmetic, rules of the caller's own and the 16-bit types as they stand.
#include <kzero/bfloat16.hpp>
#include <kzero/float16.hpp>
#include <kzero/rule.hpp>

#include "kernels/arithmetic.hpp"

template <class Step, class T, class Parameter>
__global__ void update(Step step, const T* gradient, T* main,
                       Parameter* parameter, T* state0, T* state1, T* state2,
                       long long count) {
  const long long i =
      blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  T state[3] = {state0[i], state1[i], state2[i]};
  step(gradient[i], main[i], state);
  state0[i] = state[0];
  state1[i] = state[1];
  state2[i] = state[2];
  parameter[i] = Parameter(static_cast<float>(main[i]));
}

template <template <class> class Step>
void launch() {
  update<Step<float>, float, kzero::bfloat16>
      <<<1, 32>>>({}, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
  update<Step<float>, float, kzero::float16>
      <<<1, 32>>>({}, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
  update<Step<double>, double, float>
      <<<1, 32>>>({}, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
}

// Both passes of LAMB.
template <class T>
__global__ void update_lamb(kzero::detail::LambMove<T> move, const T* gradient,
                            T* main, T* state0, T* state1, T* direction) {
  const int i = threadIdx.x;
  T state[2] = {state0[i], state1[i]};
  move.step.moments(gradient[i], state);
  state0[i] = state[0];
  state1[i] = state[1];
  direction[i] = move.step.direction(main[i], state);
  move(main[i], state);
}

struct Signum {
  static constexpr std::string_view name = "signum";
  static constexpr std::array<std::string_view, 1> state = {"momentum"};
  double learning_rate = 1e-3;
  double beta = 0.9;
  static constexpr kzero::Hyperparameter<Signum> hyperparameters[] = {
      {"learning_rate", &Signum::learning_rate}, {"beta", &Signum::beta}};

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    s[0] = T(beta) * s[0] + T(1.0 - beta) * g;
    p -= T(learning_rate) * (T(s[0] > T(0)) - T(s[0] < T(0)));
  }
};
template <class T>
using SignumOf = Signum;

void launch_all() {
  launch<kzero::detail::AdamWStep>();
  launch<kzero::detail::AmsgradStep>();
  launch<kzero::detail::SgdStep>();
  launch<kzero::detail::MomentumStep>();
  launch<kzero::detail::AdamStep>();
  launch<kzero::detail::AdamAmsgradStep>();
  launch<kzero::detail::AdagradStep>();
  launch<kzero::detail::RmsPropPlainStep>();
  launch<kzero::detail::RmsPropMomentumStep>();
  launch<kzero::detail::RmsPropCenteredStep>();
  launch<kzero::detail::RmsPropCenteredMomentumStep>();
  launch<kzero::detail::LionStep>();
  launch<SignumOf>();
  update_lamb<float>
      <<<1, 32>>>({}, nullptr, nullptr, nullptr, nullptr, nullptr);
  update_lamb<double>
      <<<1, 32>>>({}, nullptr, nullptr, nullptr, nullptr, nullptr);
}

// The conversion to a Rule, with its host loop.
kzero::Rule signum() { return Signum{}; }
