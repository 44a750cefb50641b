// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Hyperparameters out of range: of a rule that is made, and of one that is
// changed.
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <kzero/kzero.hpp>
#include <limits>

#include "core/message.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

const std::initializer_list<double> not_finite = {nan, infinity, -infinity};
const std::initializer_list<double> below_0 = {-1.0, -1e-300, nan, infinity};
const std::initializer_list<double> no_fraction = {1.0, -0.5, 2.0, nan,
                                                   infinity};

/// A row for each value, in the struct and by name.
template <class R>
void add(WrongCalls& rows, const char* member_name, double R::*member,
         std::initializer_list<double> values) {
  const std::string rule(Rule(R()).name());
  for (const double value : values) {
    const std::string given = detail::concat(value);
    const std::string text = rule + "." + member_name + " = " + given;
    const std::vector<std::string> says = {rule, member_name, "is " + given,
                                           "expected"};
    rows.push_back({text,
                    [=] {
                      R changed;
                      changed.*member = value;
                      static_cast<void>(Rule(changed));
                    },
                    says});
    rows.push_back({text + " by name",
                    [=] {
                      Rule changed = R();
                      changed.set(member_name, value);
                    },
                    says});
  }
}

template <class R>
void add_common(WrongCalls& rows) {
  add<R>(rows, "learning_rate", &R::learning_rate, below_0);
  add<R>(rows, "weight_decay", &R::weight_decay, below_0);
}

template <class R>
void add_betas(WrongCalls& rows) {
  add<R>(rows, "beta1", &R::beta1, no_fraction);
  add<R>(rows, "beta2", &R::beta2, no_fraction);
}

TEST(WrongCalls, OfEveryHyperparameter) {
  WrongCalls rows;
  add_common<AdamW>(rows);
  add_betas<AdamW>(rows);
  add<AdamW>(rows, "epsilon", &AdamW::epsilon, below_0);
  add_common<Adam>(rows);
  add_betas<Adam>(rows);
  add<Adam>(rows, "epsilon", &Adam::epsilon, below_0);
  add_common<Lamb>(rows);
  add_betas<Lamb>(rows);
  add<Lamb>(rows, "epsilon", &Lamb::epsilon, below_0);
  add_common<Lion>(rows);
  add_betas<Lion>(rows);
  add_common<Sgd>(rows);
  add<Sgd>(rows, "momentum", &Sgd::momentum, below_0);
  add<Sgd>(rows, "dampening", &Sgd::dampening, not_finite);
  add_common<Adagrad>(rows);
  add<Adagrad>(rows, "learning_rate_decay", &Adagrad::learning_rate_decay,
               below_0);
  add<Adagrad>(rows, "initial_accumulator_value",
               &Adagrad::initial_accumulator_value, below_0);
  add<Adagrad>(rows, "epsilon", &Adagrad::epsilon, below_0);
  add_common<RmsProp>(rows);
  add<RmsProp>(rows, "alpha", &RmsProp::alpha, no_fraction);
  add<RmsProp>(rows, "epsilon", &RmsProp::epsilon, below_0);
  add<RmsProp>(rows, "momentum", &RmsProp::momentum, below_0);
  add_common<Muon>(rows);
  add<Muon>(rows, "momentum", &Muon::momentum, no_fraction);
  EXPECT_GE(rows.size(), 100u);
  expect_refused(rows);
}

struct Signum {
  static constexpr std::string_view name = "signum";
  static constexpr std::array<std::string_view, 0> state = {};
  double learning_rate = 1e-3;
  static constexpr Hyperparameter<Signum> hyperparameters[] = {
      {"learning_rate", &Signum::learning_rate}};
  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T*) const {
    p -= T(learning_rate) * g;
  }
};

struct Impostor : Signum {
  static constexpr std::string_view name = "adamw";
  static constexpr Hyperparameter<Impostor> hyperparameters[] = {
      {"learning_rate", &Impostor::learning_rate}};
};

struct Strict : Signum {
  static constexpr std::string_view name = "strict";
  static constexpr Hyperparameter<Strict> hyperparameters[] = {
      {"learning_rate", &Strict::learning_rate}};
  void check() const {
    if (learning_rate > 1.0)
      throw InvalidArgument(
          detail::concat("strict: learning_rate is ", learning_rate));
  }
};

struct MatrixSignum {
  static constexpr std::string_view name = "matrix_signum";
  static constexpr std::array<std::string_view, 0> state = {};
  double learning_rate = 1e-3;
  static constexpr Hyperparameter<MatrixSignum> hyperparameters[] = {
      {"learning_rate", &MatrixSignum::learning_rate}};
  template <class T>
  void operator()(const MatrixUpdate<T>&) const {}
};

template <class R>
R with_rate(double rate) {
  R rule;
  rule.learning_rate = rate;
  return rule;
}

TEST(WrongCalls, OfRulesAsAWhole) {
  const auto set = [](Rule rule, const char* name, double value) {
    return [=] { Rule(rule).set(name, value); };
  };
  const auto get = [](Rule rule, const char* name) {
    return [=] { static_cast<void>(rule.get(name)); };
  };
  const Rule nesterov = Sgd{.momentum = 0.9, .nesterov = true};
  const WrongCalls rows = {
      {"amsgrad of one half",
       set(AdamW{}, "amsgrad", 0.5),
       {"adamw", "amsgrad is 0.5", "0 or 1"}},
      {"maximize of 2", set(Lion{}, "maximize", 2.0), {"maximize is 2"}},
      {"centered of NaN", set(RmsProp{}, "centered", nan), {"centered is nan"}},
      {"amsgrad later",
       set(AdamW{}, "amsgrad", 1.0),
       {"adamw", "amsgrad", "from 0 to 1"}},
      {"amsgrad no more",
       set(Adam{.amsgrad = true}, "amsgrad", 0.0),
       {"adam", "amsgrad", "from 1 to 0"}},
      {"centered later",
       set(RmsProp{}, "centered", 1.0),
       {"rmsprop", "centered", "from 0 to 1"}},
      {"momentum later",
       set(Sgd{}, "momentum", 0.9),
       {"sgd", "momentum", "from 0 to 0.9"}},
      {"momentum no more",
       set(Sgd{.momentum = 0.9}, "momentum", 0.0),
       {"sgd", "momentum", "from 0.9 to 0"}},
      {"momentum of rmsprop later",
       set(RmsProp{}, "momentum", 0.5),
       {"rmsprop", "momentum", "from 0 to 0.5"}},
      {"nesterov without momentum",
       [] { Rule(Sgd{.nesterov = true}); },
       {"sgd", "nesterov is 1", "momentum is 0"}},
      {"nesterov with dampening",
       [] { Rule(Sgd{.momentum = 0.9, .dampening = 0.1, .nesterov = true}); },
       {"sgd", "nesterov is 1", "dampening is 0.1"}},
      {"nesterov by name, without momentum",
       set(Sgd{}, "nesterov", 1.0),
       {"sgd", "nesterov is 1", "momentum is 0"}},
      {"dampening under nesterov",
       set(nesterov, "dampening", 0.1),
       {"sgd", "nesterov is 1", "dampening is 0.1"}},
      {"no momentum under nesterov",
       set(nesterov, "momentum", 0.0),
       {"sgd", "nesterov is 1", "momentum is 0"}},
      {"an unknown name is read",
       get(Sgd{}, "beta1"),
       {"sgd", "\"beta1\"", "momentum"}},
      {"an unknown name is set",
       set(AdamW{}, "momentum", 0.9),
       {"adamw", "\"momentum\"", "beta1"}},
      {"no name is set", set(Lamb{}, "", 1.0), {"lamb", "\"\"", "beta1"}},
      {"a name with another case is set",
       set(Lion{}, "Beta1", 0.5),
       {"lion", "\"Beta1\""}},
      {"a rule of one's own with NaN",
       [] { Rule(with_rate<Signum>(nan)); },
       {"signum", "learning_rate is nan"}},
      {"a rule of one's own is set to infinity",
       set(Signum(), "learning_rate", infinity),
       {"signum", "learning_rate is inf"}},
      {"a rule of one's own lacks a name",
       set(Signum(), "beta", 0.5),
       {"signum", "\"beta\"", "learning_rate"}},
      {"a rule of one's own refuses by its check",
       [] { Rule(with_rate<Strict>(7.0)); },
       {"strict", "learning_rate is 7"}},
      {"a rule of one's own refuses a change",
       set(Strict(), "learning_rate", 8.0),
       {"strict", "learning_rate is 8"}},
      {"nesterov of one half",
       set(Muon{}, "nesterov", 0.5),
       {"muon", "nesterov is 0.5", "0 or 1"}},
      {"a rule for matrices beside Muon",
       [] { static_cast<void>(Rule(Muon{}, MatrixSignum{})); },
       {"muon", "matrix_signum", "for matrices too", "AdamW"}},
      {"Muon beside a rule of one's own",
       [] { static_cast<void>(Rule(MatrixSignum{}, Rule(Muon{}, Sgd{}))); },
       {"matrix_signum", "is muon", "for matrices too"}},
      {"a rule of one's own for matrices with NaN",
       [] { Rule(with_rate<MatrixSignum>(nan)); },
       {"matrix_signum", "learning_rate is nan"}},
      {"a rule of one's own with the name of another",
       [] { static_cast<void>(Rule(Impostor())); },
       {"\"adamw\"", "name"}},
  };
  expect_refused(rows);
}

// What is refused changes nothing.
TEST(WrongCalls, KeepTheRule) {
  Rule rule = Sgd{.learning_rate = 0.5, .momentum = 0.9};
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, double>>{
           {"learning_rate", -1.0},
           {"momentum", 0.0},
           {"nesterov", 0.5},
           {"weight_decay", nan}})
    EXPECT_THROW(rule.set(name, value), InvalidArgument);
  EXPECT_EQ(rule.get("learning_rate"), 0.5);
  EXPECT_EQ(rule.get("momentum"), 0.9);
  EXPECT_EQ(rule.get("nesterov"), 0.0);
  EXPECT_EQ(rule.get("weight_decay"), 0.0);
}

}  // namespace
}  // namespace kzero::test
