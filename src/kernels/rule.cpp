// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <cmath>
#include <cstddef>
#include <kzero/error.hpp>
#include <kzero/rule.hpp>
#include <limits>
#include <type_traits>

#include "core/message.hpp"

namespace kzero {
namespace {

// Calls f(name, member) for each hyperparameter, in the order of the members.
template <class F, class AnyAdam>
requires std::is_same_v<AnyAdam, Adam> || std::is_same_v<AnyAdam, AdamW>
void for_each_member(AnyAdam& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("beta1", rule.beta1);
  f("beta2", rule.beta2);
  f("epsilon", rule.epsilon);
  f("weight_decay", rule.weight_decay);
  f("amsgrad", rule.amsgrad);
  f("maximize", rule.maximize);
}

template <class F>
void for_each_member(Adagrad& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("learning_rate_decay", rule.learning_rate_decay);
  f("weight_decay", rule.weight_decay);
  f("initial_accumulator_value", rule.initial_accumulator_value);
  f("epsilon", rule.epsilon);
  f("maximize", rule.maximize);
}

template <class F>
void for_each_member(RmsProp& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("alpha", rule.alpha);
  f("epsilon", rule.epsilon);
  f("weight_decay", rule.weight_decay);
  f("momentum", rule.momentum);
  f("centered", rule.centered);
  f("maximize", rule.maximize);
}

template <class F>
void for_each_member(Lion& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("beta1", rule.beta1);
  f("beta2", rule.beta2);
  f("weight_decay", rule.weight_decay);
  f("maximize", rule.maximize);
}

template <class F>
void for_each_member(Lamb& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("beta1", rule.beta1);
  f("beta2", rule.beta2);
  f("epsilon", rule.epsilon);
  f("weight_decay", rule.weight_decay);
  f("maximize", rule.maximize);
}

template <class F>
void for_each_member(Muon& rule, F&& f) {
  f("learning_rate", rule.learning_rate);
  f("momentum", rule.momentum);
  f("nesterov", rule.nesterov);
  f("weight_decay", rule.weight_decay);
  f("maximize", rule.maximize);
}

template <class F>
void for_each_member(detail::OwnRule& rule, F&& f) {
  for (std::size_t i = 0; i < rule.table->hyperparameters.size(); ++i) {
    double value = rule.table->get(rule.value, i);
    f(rule.table->hyperparameters[i], value);
    rule.table->set(rule.value, i, value);
  }
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

std::string_view name_of(const AdamW&) { return "adamw"; }
std::string_view name_of(const Sgd&) { return "sgd"; }
std::string_view name_of(const Adam&) { return "adam"; }
std::string_view name_of(const Adagrad&) { return "adagrad"; }
std::string_view name_of(const RmsProp&) { return "rmsprop"; }
std::string_view name_of(const Lion&) { return "lion"; }
std::string_view name_of(const Lamb&) { return "lamb"; }
std::string_view name_of(const Muon&) { return "muon"; }
std::string_view name_of(const detail::OwnRule& rule) {
  return rule.table->name;
}

template <class... Rules>
bool is_built_in(std::string_view name,
                 std::type_identity<std::variant<Rules...>>) {
  const auto has_it = [&]<class R>(std::type_identity<R>) {
    if constexpr (std::is_same_v<R, detail::OwnRule>)
      return false;
    else
      return name == name_of(R{});
  };
  return (has_it(std::type_identity<Rules>{}) || ...);
}

void require(bool holds, std::string_view rule, std::string_view name,
             double value, std::string_view expected) {
  if (holds) return;
  throw InvalidArgument(
      detail::concat(rule, ": ", name, " is ", value, ", expected ", expected));
}

constexpr double most = std::numeric_limits<float>::max();

void require_not_negative(std::string_view rule, std::string_view name,
                          double value) {
  require(value >= 0.0 && value <= most, rule, name, value,
          "a number from 0 to 3.4e38, which float32 holds");
}

// Smaller ones would be 0 where float32 is computed in.
void require_epsilon(std::string_view rule, double value) {
  require(value == 0.0 || (value >= double(std::numeric_limits<float>::min()) &&
                           value <= most),
          rule, "epsilon", value,
          "0 or a number from 1.2e-38 to 3.4e38, which float32 holds");
}

void require_fraction(std::string_view rule, std::string_view name,
                      double value) {
  require(value >= 0.0 && value < 1.0, rule, name, value, "a number in [0, 1)");
}

template <class AnyAdam>
void check_adam(const AnyAdam& rule) {
  const std::string_view name = name_of(rule);
  require_not_negative(name, "learning_rate", rule.learning_rate);
  require_fraction(name, "beta1", rule.beta1);
  require_fraction(name, "beta2", rule.beta2);
  require(rule.learning_rate / (1.0 - rule.beta1) <= most, name,
          "learning_rate", rule.learning_rate,
          "a number that float32 holds when it is divided by 1 - beta1");
  require_epsilon(name, rule.epsilon);
  require_not_negative(name, "weight_decay", rule.weight_decay);
}

void check_value(const AdamW& rule) { check_adam(rule); }
void check_value(const Adam& rule) { check_adam(rule); }
void check_value(const Lamb& rule) { check_adam(rule); }

void check_value(const Sgd& rule) {
  require_not_negative("sgd", "learning_rate", rule.learning_rate);
  require_not_negative("sgd", "momentum", rule.momentum);
  require(std::abs(rule.dampening) <= most, "sgd", "dampening", rule.dampening,
          "a number from -3.4e38 to 3.4e38, which float32 holds");
  require_not_negative("sgd", "weight_decay", rule.weight_decay);
  require(!rule.nesterov || rule.momentum > 0.0, "sgd", "momentum",
          rule.momentum, "a number above 0, since nesterov is 1");
  require(!rule.nesterov || rule.dampening == 0.0, "sgd", "dampening",
          rule.dampening, "0, since nesterov is 1");
}

void check_value(const Adagrad& rule) {
  require_not_negative("adagrad", "learning_rate", rule.learning_rate);
  require_not_negative("adagrad", "learning_rate_decay",
                       rule.learning_rate_decay);
  require_not_negative("adagrad", "weight_decay", rule.weight_decay);
  require_not_negative("adagrad", "initial_accumulator_value",
                       rule.initial_accumulator_value);
  require_epsilon("adagrad", rule.epsilon);
}

void check_value(const RmsProp& rule) {
  require_not_negative("rmsprop", "learning_rate", rule.learning_rate);
  require_fraction("rmsprop", "alpha", rule.alpha);
  require_epsilon("rmsprop", rule.epsilon);
  require_not_negative("rmsprop", "weight_decay", rule.weight_decay);
  require_not_negative("rmsprop", "momentum", rule.momentum);
}

void check_value(const Lion& rule) {
  require_not_negative("lion", "learning_rate", rule.learning_rate);
  require_fraction("lion", "beta1", rule.beta1);
  require_fraction("lion", "beta2", rule.beta2);
  require_not_negative("lion", "weight_decay", rule.weight_decay);
}

void check_value(const Muon& rule) {
  require_not_negative("muon", "learning_rate", rule.learning_rate);
  require_fraction("muon", "momentum", rule.momentum);
  require_not_negative("muon", "weight_decay", rule.weight_decay);
}

void check_value(const detail::OwnRule& rule) {
  const detail::OwnRuleTable& table = *rule.table;
  if (is_built_in(table.name, std::type_identity<Rule::Variant>{})) {
    throw InvalidArgument(detail::concat(
        "a rule of your own has the name ", detail::quoted(table.name),
        ", which is a rule of kzero's: give it another name"));
  }
  if (table.check != nullptr) {
    table.check(rule.value);
    return;
  }
  for (std::size_t i = 0; i < table.hyperparameters.size(); ++i) {
    const double value = table.get(rule.value, i);
    require(std::isfinite(value), table.name, table.hyperparameters[i], value,
            "a finite number");
  }
}

using Names = std::vector<std::string_view>;

Names moments(bool amsgrad) {
  if (amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}

Names states_of(const AdamW& rule) { return moments(rule.amsgrad); }
Names states_of(const Adam& rule) { return moments(rule.amsgrad); }
Names states_of(const Lamb&) { return moments(false); }
Names states_of(const Adagrad&) { return {"sum"}; }
Names states_of(const Lion&) { return {"exp_avg"}; }
Names states_of(const Muon&) { return {"momentum_buffer"}; }

Names states_of(const Sgd& rule) {
  if (rule.momentum == 0.0) return {};
  return {"momentum_buffer"};
}

Names states_of(const RmsProp& rule) {
  Names names = {"square_avg"};
  if (rule.centered) names.push_back("grad_avg");
  if (rule.momentum > 0.0) names.push_back("momentum_buffer");
  return names;
}

Names states_of(const detail::OwnRule& rule) {
  return {rule.table->state.begin(), rule.table->state.end()};
}

}  // namespace

void Rule::check() const {
  std::visit([](const auto& rule) { check_value(rule); }, value_);
}

std::shared_ptr<const Rule> Rule::default_beside() {
  return std::make_shared<const Rule>();
}

void Rule::set_beside(Rule beside) {
  if (beside.beside() != nullptr)
    throw InvalidArgument(detail::concat(
        name(), ": the rule beside it is ", beside.name(),
        ", which is for matrices too (expected one for what is no matrix): "
        "give a rule that updates elements, such as AdamW"));
  beside_ = std::make_shared<const Rule>(std::move(beside));
}

std::string_view Rule::name() const {
  return std::visit([](const auto& rule) { return name_of(rule); }, value_);
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

namespace {

void assign(std::string_view rule, std::string_view name, double value,
            bool& member) {
  require(value == 0.0 || value == 1.0, rule, name, value, "0 or 1");
  member = value != 0.0;
}

void assign(std::string_view, std::string_view, double value, double& member) {
  member = value;
}

std::string listed(const Names& names) {
  std::string text;
  for (const std::string_view name : names)
    text += detail::concat(text.empty() ? "" : ", ", name);
  return text.empty() ? "none" : text;
}

}  // namespace

void Rule::set(std::string_view hyperparameter, double value) {
  bool found = false;
  Rule changed = *this;
  std::visit(
      [&](auto& rule) {
        for_each_member(rule, [&](std::string_view name, auto& member) {
          if (name != hyperparameter) return;
          found = true;
          assign(this->name(), name, value, member);
        });
        check_value(rule);
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

void Rule::set(std::span<const double> values) {
  const std::size_t count = hyperparameters().size();
  if (values.size() != count)
    throw InvalidArgument(detail::concat(name(), " has ", count,
                                         " hyperparameters, expected as many "
                                         "values, got ",
                                         values.size()));
  Rule changed = *this;
  std::visit(
      [&](auto& rule) {
        std::size_t i = 0;
        for_each_member(rule, [&](std::string_view name, auto& member) {
          assign(this->name(), name, values[i++], member);
        });
        check_value(rule);
      },
      changed.value_);
  if (changed.state_names() != state_names())
    throw InvalidArgument(detail::concat(
        name(), ": the hyperparameters need other state arrays (",
        listed(changed.state_names()), ") than there are (",
        listed(state_names()), "): make a new optimizer"));
  *this = changed;
}

std::vector<std::string_view> Rule::state_names() const {
  return std::visit([](const auto& rule) { return states_of(rule); }, value_);
}

}  // namespace kzero
