// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <cmath>
#include <kzero/error.hpp>
#include <kzero/rule.hpp>
#include <limits>
#include <type_traits>

#include "core/message.hpp"

namespace kzero {
namespace {

// Calls f(name, member) for each hyperparameter, in the order of the members.
template <class F>
void for_each_member(AdamW& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("beta1", rule.beta1);
  f("beta2", rule.beta2);
  f("epsilon", rule.epsilon);
  f("weight_decay", rule.weight_decay);
  f("amsgrad", rule.amsgrad);
  f("maximize", rule.maximize);
}

template <class F>
void for_each_member(Sgd& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("momentum", rule.momentum);
  f("dampening", rule.dampening);
  f("weight_decay", rule.weight_decay);
  f("nesterov", rule.nesterov);
  f("maximize", rule.maximize);
}

void require(bool holds, std::string_view rule, std::string_view name,
             double value, std::string_view expected) {
  if (holds) return;
  throw InvalidArgument(
      detail::concat(rule, ": ", name, " is ", value, ", expected ", expected));
}

void require_not_negative(std::string_view rule, std::string_view name,
                          double value) {
  require(value >= 0.0 && std::isfinite(value), rule, name, value,
          "a finite number of 0 or more");
}

void require_fraction(std::string_view rule, std::string_view name,
                      double value) {
  require(value >= 0.0 && value < 1.0, rule, name, value, "a number in [0, 1)");
}

void check(const AdamW& rule) {
  require_not_negative("adamw", "learning_rate", rule.learning_rate);
  require_fraction("adamw", "beta1", rule.beta1);
  require_fraction("adamw", "beta2", rule.beta2);
  require_not_negative("adamw", "epsilon", rule.epsilon);
  require_not_negative("adamw", "weight_decay", rule.weight_decay);
}

void check(const Sgd& rule) {
  require_not_negative("sgd", "learning_rate", rule.learning_rate);
  require_not_negative("sgd", "momentum", rule.momentum);
  require(std::isfinite(rule.dampening), "sgd", "dampening", rule.dampening,
          "a finite number");
  require_not_negative("sgd", "weight_decay", rule.weight_decay);
  require(!rule.nesterov || (rule.momentum > 0.0 && rule.dampening == 0.0),
          "sgd", "nesterov", 1.0,
          "0, or a momentum above 0 and no dampening with it");
}

}  // namespace

Rule::Rule(const AdamW& rule) : value_(rule) { check(rule); }
Rule::Rule(const Sgd& rule) : value_(rule) { check(rule); }

std::string_view Rule::name() const {
  return std::holds_alternative<AdamW>(value_) ? "adamw" : "sgd";
}

std::vector<std::string_view> Rule::hyperparameters() const {
  std::vector<std::string_view> names;
  Variant copy = value_;
  std::visit(
      [&](auto& rule) {
        for_each_member(
            rule, [&](std::string_view name, auto&) { names.push_back(name); });
      },
      copy);
  return names;
}

namespace {

[[noreturn]] void throw_unknown(const Rule& rule, std::string_view name) {
  std::string known;
  for (std::string_view each : rule.hyperparameters())
    known += detail::concat(known.empty() ? "" : ", ", each);
  throw InvalidArgument(detail::concat(rule.name(), " has no hyperparameter ",
                                       detail::quoted(name), ": it has ",
                                       known));
}

}  // namespace

double Rule::get(std::string_view hyperparameter) const {
  double value = std::numeric_limits<double>::quiet_NaN();
  bool found = false;
  Variant copy = value_;
  std::visit(
      [&](auto& rule) {
        for_each_member(rule, [&](std::string_view name, auto& member) {
          if (name != hyperparameter) return;
          value = static_cast<double>(member);
          found = true;
        });
      },
      copy);
  if (!found) throw_unknown(*this, hyperparameter);
  return value;
}

void Rule::set(std::string_view hyperparameter, double value) {
  bool found = false;
  Rule changed = *this;
  std::visit(
      [&](auto& rule) {
        for_each_member(rule, [&](std::string_view name, auto& member) {
          if (name != hyperparameter) return;
          found = true;
          if constexpr (std::is_same_v<decltype(member), bool&>) {
            require(value == 0.0 || value == 1.0, this->name(), name, value,
                    "0 or 1");
            member = value != 0.0;
          } else {
            member = value;
          }
        });
        check(rule);
      },
      changed.value_);
  if (!found) throw_unknown(*this, hyperparameter);
  if (changed.state_names() != state_names()) {
    throw InvalidArgument(detail::concat(
        name(), ": ", hyperparameter, " cannot change from ",
        get(hyperparameter), " to ", value,
        ", since the rule would need other state arrays: make a new "
        "optimizer"));
  }
  *this = changed;
}

std::vector<std::string_view> Rule::state_names() const {
  if (const auto* adamw = std::get_if<AdamW>(&value_)) {
    if (adamw->amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
    return {"exp_avg", "exp_avg_sq"};
  }
  if (std::get<Sgd>(value_).momentum == 0.0) return {};
  return {"momentum_buffer"};
}

}  // namespace kzero
