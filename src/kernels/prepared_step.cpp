// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "kernels/prepared_step.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/arithmetic.hpp"
#include "kernels/muon.hpp"

namespace kzero::detail {
namespace {

template <class Step>
void store(PreparedStep& prepared, UpdateKernel kernel, const Step& step) {
  static_assert(sizeof(Step) <= sizeof(prepared.step));
  static_assert(std::is_trivially_copyable_v<Step>);
  std::memcpy(prepared.step, &step, sizeof(Step));
  prepared.update = &host_kernels().update[static_cast<std::size_t>(kernel)];
}

// 1 - beta^t.
double correction(double beta, std::int64_t t) {
  return 1.0 - std::pow(beta, static_cast<double>(t));
}

// All but the decay of p.
template <class T, class AnyAdam>
AmsgradStep<T> adam_step(const AnyAdam& rule, std::int64_t t) {
  AmsgradStep<T> step;
  step.decay = T(1);
  step.one_minus_beta1 = static_cast<T>(1.0 - rule.beta1);
  step.beta2 = static_cast<T>(rule.beta2);
  step.one_minus_beta2 = static_cast<T>(1.0 - rule.beta2);
  step.step_size =
      static_cast<T>(rule.learning_rate / correction(rule.beta1, t));
  step.inverse_root_correction =
      static_cast<T>(1.0 / std::sqrt(correction(rule.beta2, t)));
  step.epsilon = static_cast<T>(rule.epsilon);
  return step;
}

template <class T>
void prepare(PreparedStep& prepared, const AdamW& rule, std::int64_t t) {
  AmsgradStep<T> step = adam_step<T>(rule, t);
  step.decay = static_cast<T>(1.0 - rule.learning_rate * rule.weight_decay);
  const AdamWStep<T>& plain = step;
  if (rule.amsgrad)
    store(prepared, UpdateKernel::amsgrad, step);
  else
    store(prepared, UpdateKernel::adamw, plain);
}

template <class T>
void prepare(PreparedStep& prepared, const Adam& rule, std::int64_t t) {
  const AmsgradStep<T> step = adam_step<T>(rule, t);
  const T weight_decay = static_cast<T>(rule.weight_decay);
  if (rule.amsgrad)
    store(prepared, UpdateKernel::adam_amsgrad,
          AdamAmsgradStep<T>{step, weight_decay});
  else
    store(prepared, UpdateKernel::adam, AdamStep<T>{step, weight_decay});
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

template <class T>
void prepare(PreparedStep& prepared, const Adagrad& rule, std::int64_t t) {
  const double age = static_cast<double>(t - 1);
  const bool first = t == 1;
  AdagradStep<T> step;
  step.step_size = static_cast<T>(rule.learning_rate /
                                  (1.0 + age * rule.learning_rate_decay));
  step.weight_decay = static_cast<T>(rule.weight_decay);
  step.keep = first ? T(0) : T(1);
  step.start = first ? static_cast<T>(rule.initial_accumulator_value) : T(0);
  step.epsilon = static_cast<T>(rule.epsilon);
  store(prepared, UpdateKernel::adagrad, step);
}

template <class T>
void prepare(PreparedStep& prepared, const RmsProp& rule, std::int64_t) {
  // The coefficients are the same for all four.
  RmsPropCenteredMomentumStep<T> step;
  step.learning_rate = static_cast<T>(rule.learning_rate);
  step.weight_decay = static_cast<T>(rule.weight_decay);
  step.alpha = static_cast<T>(rule.alpha);
  step.one_minus_alpha = static_cast<T>(1.0 - rule.alpha);
  step.epsilon = static_cast<T>(rule.epsilon);
  step.momentum = static_cast<T>(rule.momentum);
  const bool moves = rule.momentum > 0.0;
  store(prepared,
        rule.centered
            ? (moves ? UpdateKernel::rmsprop_centered_momentum
                     : UpdateKernel::rmsprop_centered)
            : (moves ? UpdateKernel::rmsprop_momentum : UpdateKernel::rmsprop),
        step);
}

template <class T>
void prepare(PreparedStep& prepared, const Lion& rule, std::int64_t) {
  LionStep<T> step;
  step.learning_rate = static_cast<T>(rule.learning_rate);
  step.decay = static_cast<T>(1.0 - rule.learning_rate * rule.weight_decay);
  step.beta1 = static_cast<T>(rule.beta1);
  step.one_minus_beta1 = static_cast<T>(1.0 - rule.beta1);
  step.beta2 = static_cast<T>(rule.beta2);
  step.one_minus_beta2 = static_cast<T>(1.0 - rule.beta2);
  store(prepared, UpdateKernel::lion, step);
}

template <class T>
void prepare(PreparedStep& prepared, const Lamb& rule, std::int64_t t) {
  LambStep<T> step;
  step.one_minus_beta1 = static_cast<T>(1.0 - rule.beta1);
  step.beta2 = static_cast<T>(rule.beta2);
  step.one_minus_beta2 = static_cast<T>(1.0 - rule.beta2);
  step.inverse_correction = static_cast<T>(1.0 / correction(rule.beta1, t));
  step.inverse_root_correction =
      static_cast<T>(1.0 / std::sqrt(correction(rule.beta2, t)));
  step.epsilon = static_cast<T>(rule.epsilon);
  step.weight_decay = static_cast<T>(rule.weight_decay);
  step.learning_rate = rule.learning_rate;
  store(prepared, UpdateKernel::lamb, step);
  prepared.trust = &host_kernels().trust;
}

template <class T>
void prepare(PreparedStep& prepared, const Muon& rule, std::int64_t) {
  const MuonStep step{rule.learning_rate, rule.momentum, rule.weight_decay,
                      rule.nesterov};
  static_assert(sizeof step <= sizeof prepared.step);
  std::memcpy(prepared.step, &step, sizeof step);
  prepared.matrix = &muon_functions;
}

// The rule converts its numbers itself.
template <class T>
void prepare(PreparedStep& prepared, const OwnRule& rule, std::int64_t t) {
  std::memcpy(prepared.step, rule.value, sizeof(rule.value));
  if (rule.table->prepare != nullptr) rule.table->prepare(prepared.step, t);
  if (rule.table->work_elements != nullptr)
    prepared.matrix = &rule.table->update_matrix;
  else
    prepared.update = &rule.table->update;
}

template <class R>
double sign_of(const R& rule) {
  return rule.maximize ? -1.0 : 1.0;
}

double sign_of(const OwnRule&) { return 1.0; }

}  // namespace

PreparedStep prepare_step(const Rule& rule, std::int64_t t, DType dtype) {
  PreparedStep prepared;
  prepared.t = t;
  std::visit(
      [&](const auto& value) {
        prepared.sign = sign_of(value);
        if (main_dtype(dtype) == DType::float64)
          prepare<double>(prepared, value, t);
        else
          prepare<float>(prepared, value, t);
      },
      rule.value());
  return prepared;
}

std::int64_t matrix_work_elements(const Rule& rule, std::int64_t rows,
                                  std::int64_t columns, bool scaled) {
  if (std::holds_alternative<Muon>(rule.value()))
    return muon_work_elements(rows, columns);
  return std::get<OwnRule>(rule.value())
      .table->work_elements(rows, columns, scaled);
}

bool uses_trust_ratio(const Rule& rule) {
  return std::holds_alternative<Lamb>(rule.value());
}

double trust_ratio(const Rule& rule, const TrustSums& sums) {
  const bool decays = std::get<Lamb>(rule.value()).weight_decay != 0.0;
  if (!decays || sums.parameter == 0.0 || sums.update == 0.0) return 1.0;
  return std::sqrt(sums.parameter) / std::sqrt(sums.update);
}

}  // namespace kzero::detail
