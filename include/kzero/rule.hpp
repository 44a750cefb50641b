// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Update rules and their hyperparameters.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kzero {

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019). With t the
/// number of updates of the parameter, this one included:
///   p *= 1 - lr*wd;  m += (1-b1)*(g-m);  v = b2*v + (1-b2)*g*g
///   p -= lr/(1-b1^t) * m / (sqrt(V)/sqrt(1-b2^t) + eps)
/// V is v, or with amsgrad its running maximum. maximize negates g first.
/// State: exp_avg (m), exp_avg_sq (v), with amsgrad max_exp_avg_sq (V).
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Stochastic gradient descent, with momentum as in Sutskever et al. (2013):
///   g += wd*p;  buf = mu*buf + (1-dampening)*g, at the first update buf = g
///   p -= lr * (nesterov ? g + mu*buf : buf);  with mu = 0: p -= lr*g
/// State: momentum_buffer, with mu = 0 nothing.
struct Sgd {
  double learning_rate = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool maximize = false;
};

/// One of the rules, with names for its hyperparameters.
class Rule {
 public:
  using Variant = std::variant<AdamW, Sgd>;

  Rule() : value_(AdamW{}) {}
  /// These throw InvalidArgument for values out of range.
  Rule(const AdamW& rule);  // NOLINT(google-explicit-constructor)
  Rule(const Sgd& rule);    // NOLINT(google-explicit-constructor)

  /// "adamw" or "sgd".
  std::string_view name() const;

  /// Names of the hyperparameters, in the order of the struct's members.
  std::vector<std::string_view> hyperparameters() const;

  /// A hyperparameter by name; options are 0 or 1. set() throws
  /// InvalidArgument for an unknown name, a value out of range, and a change
  /// that needs other state (amsgrad; momentum from or to 0).
  double get(std::string_view hyperparameter) const;
  void set(std::string_view hyperparameter, double value);

  /// Names of the state arrays beside the parameter, in order.
  std::vector<std::string_view> state_names() const;

  const Variant& value() const { return value_; }

 private:
  Variant value_;
};

}  // namespace kzero
