// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "kernels/prepared_step.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/arithmetic.hpp"

namespace kzero::detail {
namespace {

template <class Step>
void store(PreparedStep& prepared, UpdateKernel kernel, const Step& step) {
  static_assert(sizeof(Step) <= sizeof(prepared.step));
  static_assert(std::is_trivially_copyable_v<Step>);
  std::memcpy(prepared.step, &step, sizeof(Step));
  prepared.kernel = kernel;
}

template <class T>
void prepare(PreparedStep& prepared, const AdamW& rule, std::int64_t t) {
  const double count = static_cast<double>(t);
  AmsgradStep<T> step;
  step.decay = static_cast<T>(1.0 - rule.learning_rate * rule.weight_decay);
  step.one_minus_beta1 = static_cast<T>(1.0 - rule.beta1);
  step.beta2 = static_cast<T>(rule.beta2);
  step.one_minus_beta2 = static_cast<T>(1.0 - rule.beta2);
  step.step_size =
      static_cast<T>(rule.learning_rate / (1.0 - std::pow(rule.beta1, count)));
  step.inverse_root_correction =
      static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(rule.beta2, count)));
  step.epsilon = static_cast<T>(rule.epsilon);
  const AdamWStep<T>& plain = step;
  if (rule.amsgrad)
    store(prepared, UpdateKernel::amsgrad, step);
  else
    store(prepared, UpdateKernel::adamw, plain);
}

template <class T>
void prepare(PreparedStep& prepared, const Sgd& rule, std::int64_t t) {
  const T learning_rate = static_cast<T>(rule.learning_rate);
  const T weight_decay = static_cast<T>(rule.weight_decay);
  if (rule.momentum == 0.0) {
    store(prepared, UpdateKernel::sgd, SgdStep<T>{learning_rate, weight_decay});
    return;
  }
  const T momentum = static_cast<T>(rule.momentum);
  const T taken = static_cast<T>(1.0 - rule.dampening);
  const bool first = t == 1;
  store(prepared, UpdateKernel::momentum,
        MomentumStep<T>{learning_rate, weight_decay, first ? T(0) : momentum,
                        first ? T(1) : taken, T(rule.nesterov ? 1 : 0),
                        rule.nesterov ? momentum : T(1)});
}

}  // namespace

PreparedStep prepare_step(const Rule& rule, std::int64_t t, DType dtype) {
  PreparedStep prepared;
  std::visit(
      [&](const auto& value) {
        prepared.sign = value.maximize ? -1.0 : 1.0;
        if (main_dtype(dtype) == DType::float64)
          prepare<double>(prepared, value, t);
        else
          prepare<float>(prepared, value, t);
      },
      rule.value());
  return prepared;
}

}  // namespace kzero::detail
