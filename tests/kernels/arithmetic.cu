// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Compiled only, where nvcc is found: a device kernel uses the rules'
// arithmetic and the 16-bit types as they stand.
#include <kzero/bfloat16.hpp>
#include <kzero/float16.hpp>

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

void launch_all() {
  launch<kzero::detail::AdamWStep>();
  launch<kzero::detail::AmsgradStep>();
  launch<kzero::detail::SgdStep>();
  launch<kzero::detail::MomentumStep>();
}
