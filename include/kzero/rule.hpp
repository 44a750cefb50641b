// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Update rules and their hyperparameters.
#pragma once

#include <cstring>
#include <kzero/element_rule.hpp>
#include <kzero/matrix_rule.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
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

/// Adam (Kingma and Ba, 2015), with weight decay added to the gradient:
///   g += wd*p;  m += (1-b1)*(g-m);  v = b2*v + (1-b2)*g*g
///   p -= lr/(1-b1^t) * m / (sqrt(V)/sqrt(1-b2^t) + eps)
/// V, state and maximize as in AdamW.
struct Adam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adagrad (Duchi et al., 2011):
///   g += wd*p;  s += g*g, from the initial accumulator value
///   p -= lr/(1+(t-1)*lr_decay) * g / (sqrt(s) + eps)
/// State: sum (s).
struct Adagrad {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0.0;
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;
  double epsilon = 1e-10;
  bool maximize = false;
};

/// RMSprop (Hinton, 2012), centered as in Graves (2013):
///   g += wd*p;  s = a*s + (1-a)*g*g;  d = sqrt(s)
///   centered: avg = a*avg + (1-a)*g;  d = sqrt(s - avg^2)
///   p -= lr * g/(d + eps);  with momentum: buf = mu*buf + g/(d + eps)
///                                          p -= lr*buf
/// s - avg^2 is taken for zero where rounding leaves it below.
/// State: square_avg (s), centered grad_avg, with mu > 0 momentum_buffer.
struct RmsProp {
  double learning_rate = 1e-2;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
  bool maximize = false;
};

/// Lion (Chen et al., 2023):
///   p *= 1 - lr*wd;  p -= lr * sign(b1*m + (1-b1)*g), sign(0) = 0
///   m = b2*m + (1-b2)*g
/// State: exp_avg (m).
struct Lion {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
  bool maximize = false;
};

/// LAMB (You et al., 2020), with m and v as in Adam without weight decay:
///   u = m/(1-b1^t) / (sqrt(v)/sqrt(1-b2^t) + eps) + wd*p
///   p -= lr * r * u
/// The trust ratio r is |p|/|u| over the whole parameter, on all ranks; 1 where
/// either norm is 0 or wd = 0.
/// State: exp_avg (m), exp_avg_sq (v).
struct Lamb {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 1e-2;
  bool maximize = false;
};

/// Muon (Jordan et al., 2024), for matrices: the momentum's direction with all
/// singular values brought near 1, by five steps of a Newton-Schulz iteration.
///   buf = mu*buf + g;  u = nesterov ? g + mu*buf : buf
///   X = u/(|u| + 1e-7), |u| the square root of the sum of squares;
///       transposed if it has more rows than columns
///   5 times: A = X X';  X = 3.4445*X + (-4.7750*A + 2.0315*A*A) X
///   p = p*(1 - lr*wd) - lr*sqrt(max(1, rows/columns))*X, transposed back
/// What is no matrix takes the rule that is given beside it (see Rule). The
/// products are BLAS's. State: momentum_buffer.
struct Muon {
  double learning_rate = 0.02;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.0;
  bool maximize = false;
};

namespace detail {

using RuleVariant =
    std::variant<AdamW, Sgd, Adam, Adagrad, RmsProp, Lion, Lamb, Muon, OwnRule>;

template <class R, class V>
inline constexpr bool is_alternative = false;

template <class R, class... Rs>
inline constexpr bool is_alternative<R, std::variant<Rs...>> =
    (std::is_same_v<R, Rs> || ...);

template <class R>
concept BuiltInRule =
    is_alternative<R, RuleVariant> && !std::is_same_v<R, OwnRule>;

}  // namespace detail

/// One of the rules above, an ElementRule or a MatrixRule, with names for its
/// hyperparameters.
///
/// Muon and MatrixRules update matrices: parameters of exactly two extents.
/// What is none takes the rule beside them, AdamW{} where none is given. In an
/// optimizer the parameters of group "g" that are no matrices form the group
/// "g/beside": optimizer.group("default/beside").set("learning_rate", 1e-4).
/// OptimizerOptions::groups may give a rule of that name, which comes before
/// the one beside; and a matrix that is declared in the group "g/beside" takes
/// that rule too.
class Rule {
 public:
  using Variant = detail::RuleVariant;

  Rule() : value_(AdamW{}) {}

  /// Throws InvalidArgument for values out of range.
  template <detail::BuiltInRule R>
  Rule(const R& rule) : value_(rule) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_same_v<R, Muon>) beside_ = default_beside();
    check();
  }

  /// Throws InvalidArgument for values out of range, and for the name of one of
  /// the rules above.
  template <ElementRule R>
  Rule(const R& rule)  // NOLINT(google-explicit-constructor)
      : value_(detail::OwnRule{&detail::element_rule_table<R>}) {
    std::memcpy(std::get<detail::OwnRule>(value_).value, &rule, sizeof(R));
    check();
  }
  template <MatrixRule R>
  Rule(const R& rule)  // NOLINT(google-explicit-constructor)
      : value_(detail::OwnRule{&detail::matrix_rule_table<R>}),
        beside_(default_beside()) {
    std::memcpy(std::get<detail::OwnRule>(value_).value, &rule, sizeof(R));
    check();
  }

  /// Likewise, with a rule for what is no matrix. Throws InvalidArgument for
  /// one that is for matrices itself.
  template <class R>
  requires std::is_same_v<R, Muon> || MatrixRule<R> Rule(const R& rule,
                                                         Rule beside)
      : Rule(rule) {
    set_beside(std::move(beside));
  }

  /// The rule for what is no matrix; null where this rule updates elements.
  const Rule* beside() const { return beside_.get(); }

  /// "adamw", "sgd", "adam", "adagrad", "rmsprop", "lion", "lamb", "muon", or
  /// the own one of a rule of your own.
  std::string_view name() const;

  /// Names of the hyperparameters, in the order of the struct's members.
  std::vector<std::string_view> hyperparameters() const;

  /// A hyperparameter by name; options are 0 or 1. set() throws
  /// InvalidArgument for an unknown name, a value out of range, and a change
  /// that needs other state (amsgrad; centered; momentum from or to 0).
  double get(std::string_view hyperparameter) const;
  void set(std::string_view hyperparameter, double value);

  /// All hyperparameters, in the order of hyperparameters(), checked together.
  /// Throws InvalidArgument as the one above, and for another number of values,
  /// with nothing changed.
  void set(std::span<const double> values);

  /// Names of the state arrays beside the parameter, in order. All elements of
  /// all arrays are zero before the first update.
  std::vector<std::string_view> state_names() const;

  const Variant& value() const { return value_; }

 private:
  static std::shared_ptr<const Rule> default_beside();
  void set_beside(Rule beside);
  void check() const;

  Variant value_;
  std::shared_ptr<const Rule> beside_;
};

}  // namespace kzero
