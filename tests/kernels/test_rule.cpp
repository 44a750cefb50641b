// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Rules: hyperparameters by name, checks, state, rules of the caller's own.
#include <gtest/gtest.h>

#include <cmath>
#include <kzero/error.hpp>
#include <kzero/rule.hpp>
#include <limits>
#include <string>
#include <vector>

#include "kernels/prepared_step.hpp"

namespace kzero {
namespace {

using Names = std::vector<std::string_view>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Rule, NamesTheMembersInOrder) {
  const Names adam = {"learning_rate", "beta1",   "beta2",   "epsilon",
                      "weight_decay",  "amsgrad", "maximize"};
  EXPECT_EQ(Rule(AdamW{}).name(), "adamw");
  EXPECT_EQ(Rule(AdamW{}).hyperparameters(), adam);
  EXPECT_EQ(Rule(Adam{}).name(), "adam");
  EXPECT_EQ(Rule(Adam{}).hyperparameters(), adam);
  EXPECT_EQ(Rule(Sgd{}).name(), "sgd");
  EXPECT_EQ(Rule(Sgd{}).hyperparameters(),
            (Names{"learning_rate", "momentum", "dampening", "weight_decay",
                   "nesterov", "maximize"}));
  EXPECT_EQ(Rule(Adagrad{}).name(), "adagrad");
  EXPECT_EQ(Rule(Adagrad{}).hyperparameters(),
            (Names{"learning_rate", "learning_rate_decay", "weight_decay",
                   "initial_accumulator_value", "epsilon", "maximize"}));
  EXPECT_EQ(Rule(RmsProp{}).name(), "rmsprop");
  EXPECT_EQ(Rule(RmsProp{}).hyperparameters(),
            (Names{"learning_rate", "alpha", "epsilon", "weight_decay",
                   "momentum", "centered", "maximize"}));
  EXPECT_EQ(Rule(Lion{}).name(), "lion");
  EXPECT_EQ(
      Rule(Lion{}).hyperparameters(),
      (Names{"learning_rate", "beta1", "beta2", "weight_decay", "maximize"}));
  EXPECT_EQ(Rule(Lamb{}).name(), "lamb");
  EXPECT_EQ(Rule(Lamb{}).hyperparameters(),
            (Names{"learning_rate", "beta1", "beta2", "epsilon", "weight_decay",
                   "maximize"}));
}

// The defaults of torch.optim, for lion and lamb of their papers' code.
TEST(Rule, DefaultsAreThoseOfTorch) {
  const auto values = [](const Rule& rule) {
    std::vector<double> all;
    for (std::string_view name : rule.hyperparameters())
      all.push_back(rule.get(name));
    return all;
  };
  using Values = std::vector<double>;
  EXPECT_EQ(values(AdamW{}), (Values{1e-3, 0.9, 0.999, 1e-8, 1e-2, 0, 0}));
  EXPECT_EQ(values(Adam{}), (Values{1e-3, 0.9, 0.999, 1e-8, 0, 0, 0}));
  EXPECT_EQ(values(Adagrad{}), (Values{1e-2, 0, 0, 0, 1e-10, 0}));
  EXPECT_EQ(values(RmsProp{}), (Values{1e-2, 0.99, 1e-8, 0, 0, 0, 0}));
  EXPECT_EQ(values(Lion{}), (Values{1e-4, 0.9, 0.99, 0, 0}));
  EXPECT_EQ(values(Lamb{}), (Values{1e-3, 0.9, 0.999, 1e-6, 1e-2, 0}));
}

TEST(Rule, StateFollowsTheOptions) {
  EXPECT_EQ(Rule(AdamW{}).state_names(), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(Rule(AdamW{.amsgrad = true}).state_names(),
            (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));
  EXPECT_EQ(Rule(Adam{}).state_names(), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(Rule(Adam{.amsgrad = true}).state_names(),
            (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));
  EXPECT_EQ(Rule(Sgd{}).state_names(), Names{});
  EXPECT_EQ(Rule(Sgd{.momentum = 0.9}).state_names(), Names{"momentum_buffer"});
  EXPECT_EQ(Rule(Adagrad{}).state_names(), Names{"sum"});
  EXPECT_EQ(Rule(RmsProp{}).state_names(), Names{"square_avg"});
  EXPECT_EQ(Rule(RmsProp{.centered = true}).state_names(),
            (Names{"square_avg", "grad_avg"}));
  EXPECT_EQ(Rule(RmsProp{.momentum = 0.9}).state_names(),
            (Names{"square_avg", "momentum_buffer"}));
  EXPECT_EQ(Rule(RmsProp{.momentum = 0.9, .centered = true}).state_names(),
            (Names{"square_avg", "grad_avg", "momentum_buffer"}));
  EXPECT_EQ(Rule(Lion{}).state_names(), Names{"exp_avg"});
  EXPECT_EQ(Rule(Lamb{}).state_names(), (Names{"exp_avg", "exp_avg_sq"}));
}

TEST(Rule, HyperparametersAreReadAndWrittenByName) {
  Rule rule = AdamW{.learning_rate = 0.5, .maximize = true};
  EXPECT_EQ(rule.get("learning_rate"), 0.5);
  EXPECT_EQ(rule.get("maximize"), 1.0);
  rule.set("learning_rate", 0.25);
  rule.set("maximize", 0.0);
  EXPECT_EQ(rule.get("learning_rate"), 0.25);
  EXPECT_FALSE(std::get<AdamW>(rule.value()).maximize);
}

TEST(Rule, EveryHyperparameterCanBeSet) {
  for (Rule rule : {Rule(AdamW{}), Rule(Sgd{.momentum = 0.9}), Rule(Adam{}),
                    Rule(Adagrad{}), Rule(RmsProp{.momentum = 0.9}),
                    Rule(Lion{}), Rule(Lamb{})}) {
    for (std::string_view name : rule.hyperparameters()) {
      if (name == "amsgrad" || name == "centered" || name == "nesterov")
        continue;
      const double value = name == "maximize" ? 1.0 : 0.75;
      rule.set(name, value);
      EXPECT_EQ(rule.get(name), value) << rule.name() << " " << name;
    }
  }
}

TEST(Rule, RefusesWrongValuesAndKeepsTheOld) {
  Rule rule = AdamW{};
  EXPECT_THROW(rule.set("learning_rate", -1.0), InvalidArgument);
  EXPECT_THROW(rule.set("beta1", 1.0), InvalidArgument);
  EXPECT_THROW(rule.set("amsgrad", 1.0), InvalidArgument);
  EXPECT_THROW(rule.set("maximize", 0.5), InvalidArgument);
  EXPECT_THROW(rule.set("momentum", 0.5), InvalidArgument);
  EXPECT_THROW(static_cast<void>(rule.get("momentum")), InvalidArgument);
  EXPECT_EQ(rule.get("learning_rate"), 1e-3);
}

TEST(Rule, RefusesAChangeThatNeedsOtherState) {
  Rule sgd = Sgd{.momentum = 0.9};
  EXPECT_THROW(sgd.set("momentum", 0.0), InvalidArgument);
  sgd.set("momentum", 0.8);
  Rule adam = Adam{};
  EXPECT_THROW(adam.set("amsgrad", 1.0), InvalidArgument);
  Rule rmsprop = RmsProp{};
  EXPECT_THROW(rmsprop.set("momentum", 0.5), InvalidArgument);
  EXPECT_THROW(rmsprop.set("centered", 1.0), InvalidArgument);
  EXPECT_EQ(rmsprop.get("momentum"), 0.0);
  Rule moving = RmsProp{.momentum = 0.5, .centered = true};
  EXPECT_THROW(moving.set("momentum", 0.0), InvalidArgument);
  EXPECT_THROW(moving.set("centered", 0.0), InvalidArgument);
  moving.set("momentum", 0.25);
}

TEST(Rule, SetsAllAtOnce) {
  Rule rule = Sgd{.momentum = 0.5, .dampening = 0.25};
  // Nesterov goes with no dampening alone.
  rule.set(std::vector{0.125, 0.75, 0.0, 0.0625, 1.0, 1.0});
  EXPECT_EQ(rule.get("learning_rate"), 0.125);
  EXPECT_EQ(rule.get("momentum"), 0.75);
  EXPECT_EQ(rule.get("dampening"), 0.0);
  EXPECT_EQ(rule.get("weight_decay"), 0.0625);
  EXPECT_EQ(rule.get("nesterov"), 1.0);
  EXPECT_EQ(rule.get("maximize"), 1.0);
  using Values = std::vector<double>;
  for (const Values& wrong :
       {Values{0.5, 0.75, 0.5, 0.0, 1.0, 0.0},  // dampening, nesterov
        Values{0.5, 0.0, 0.0, 0.0, 0.0, 0.0},   // no momentum: other state
        Values{0.5, 0.75, 0.0, 0.0, 0.5, 0.0}, Values{0.5}, Values{},
        Values{0.5, 0.75, 0.0, 0.0, 1.0, 0.0, 0.0}})
    EXPECT_THROW(rule.set(wrong), InvalidArgument);
  EXPECT_EQ(rule.get("learning_rate"), 0.125);
  EXPECT_EQ(rule.get("weight_decay"), 0.0625);
}

TEST(Rule, RefusesWrongStructs) {
  EXPECT_THROW(Rule(AdamW{.learning_rate = nan}), InvalidArgument);
  EXPECT_THROW(Rule(AdamW{.beta2 = -0.1}), InvalidArgument);
  EXPECT_THROW(Rule(AdamW{.epsilon = -1e-8}), InvalidArgument);
  // What float32 makes 0 or infinite.
  EXPECT_THROW(Rule(Adam{.epsilon = 1e-50}), InvalidArgument);
  EXPECT_THROW(Rule(Adagrad{.epsilon = 1e-40}), InvalidArgument);
  EXPECT_THROW(Rule(RmsProp{.epsilon = 1e39}), InvalidArgument);
  EXPECT_THROW(Rule(Lamb{.learning_rate = 1e38}), InvalidArgument);
  EXPECT_THROW(Rule(Sgd{.dampening = -1e300}), InvalidArgument);
  EXPECT_NO_THROW(Rule(Adam{.epsilon = 0.0}));
  EXPECT_THROW(Rule(AdamW{.weight_decay = -1.0}), InvalidArgument);
  EXPECT_THROW(Rule(Sgd{.momentum = -0.1}), InvalidArgument);
  EXPECT_THROW(Rule(Sgd{.nesterov = true}), InvalidArgument);
  EXPECT_THROW(Rule(Sgd{.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
               InvalidArgument);
}

// Every number of every rule, one after another.
TEST(Rule, RefusesWhatIsOutOfRangeInAnyMember) {
  for (const Rule& rule :
       {Rule(AdamW{}), Rule(Sgd{.momentum = 0.9}), Rule(Adam{}),
        Rule(Adagrad{}), Rule(RmsProp{}), Rule(Lion{}), Rule(Lamb{})}) {
    for (std::string_view name : rule.hyperparameters()) {
      const bool fraction =
          name == "beta1" || name == "beta2" || name == "alpha";
      for (double value : {nan, infinity, fraction ? 1.0 : -infinity,
                           name == "dampening" ? nan : -0.5}) {
        Rule copy = rule;
        EXPECT_THROW(copy.set(name, value), InvalidArgument)
            << rule.name() << " " << name << " " << value;
        EXPECT_EQ(copy.get(name), rule.get(name));
      }
    }
  }
}

TEST(Rule, SaysWhichValueOfWhichRuleIsWrong) {
  try {
    Rule(RmsProp{.alpha = 1.5});
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "rmsprop: alpha is 1.5, expected a number in [0, 1)");
  }
}

struct Signum {
  static constexpr std::string_view name = "signum";
  static constexpr std::array<std::string_view, 1> state = {"momentum"};
  double learning_rate = 1e-3;
  double beta = 0.9;
  static constexpr Hyperparameter<Signum> hyperparameters[] = {
      {"learning_rate", &Signum::learning_rate}, {"beta", &Signum::beta}};

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    s[0] = T(beta) * s[0] + T(1.0 - beta) * g;
    p -= T(learning_rate) * (T(s[0] > T(0)) - T(s[0] < T(0)));
  }
};

/// With everything that can be added, and nothing that can be left out.
struct Warm {
  static constexpr std::string_view name = "warm";
  static constexpr std::array<std::string_view, 0> state = {};
  double learning_rate = 1.0;
  double steps = 4.0;
  float now = -1.0f;  // set by prepared()
  static constexpr std::array<Hyperparameter<Warm>, 2> hyperparameters = {
      {{"learning_rate", &Warm::learning_rate}, {"steps", &Warm::steps}}};

  void check() const {
    if (!(steps >= 1.0)) throw InvalidArgument("warm: steps is below 1");
  }

  Warm prepared(std::int64_t t) const {
    Warm copy = *this;
    copy.now =
        float(learning_rate * std::fmin(1.0, static_cast<double>(t) / steps));
    return copy;
  }

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T*) const {
    p -= T(now) * g;
  }
};

/// Its members are valid only together.
struct Mixed {
  static constexpr std::string_view name = "mixed";
  static constexpr std::array<std::string_view, 0> state = {};
  double a = 0.5;
  double b = 0.5;
  static constexpr std::array<Hyperparameter<Mixed>, 2> hyperparameters = {
      {{"a", &Mixed::a}, {"b", &Mixed::b}}};

  void check() const {
    if (a + b != 1.0) throw InvalidArgument("mixed: a + b is not 1");
  }

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T*) const {
    p -= T(a) * g;
  }
};

struct Nothing {
  static constexpr std::string_view name = "nothing";
  static constexpr std::array<std::string_view, 0> state = {};
  static constexpr std::array<Hyperparameter<Nothing>, 0> hyperparameters = {};
  template <class T>
  KZERO_FUNCTION void operator()(T, T&, T*) const {}
};

struct Impostor : Nothing {
  static constexpr std::string_view name = "rmsprop";
  static constexpr std::array<Hyperparameter<Impostor>, 0> hyperparameters = {};
};

struct NoRule {
  double learning_rate;
};
static_assert(ElementRule<Signum> && ElementRule<Warm> && ElementRule<Nothing>);
static_assert(!ElementRule<NoRule> && !ElementRule<AdamW> && !ElementRule<int>);
static_assert(!ElementRule<Rule> && !std::is_convertible_v<NoRule, Rule>);
static_assert(std::is_nothrow_move_constructible_v<Rule>);

TEST(OwnRule, HasNamesNumbersAndState) {
  Rule rule = Signum{.learning_rate = 0.5};
  EXPECT_EQ(rule.name(), "signum");
  EXPECT_EQ(rule.hyperparameters(), (Names{"learning_rate", "beta"}));
  EXPECT_EQ(rule.state_names(), Names{"momentum"});
  EXPECT_EQ(rule.get("learning_rate"), 0.5);
  EXPECT_EQ(rule.get("beta"), 0.9);
  rule.set("beta", 0.25);
  EXPECT_EQ(rule.get("beta"), 0.25);
  EXPECT_EQ(rule.get("learning_rate"), 0.5);
  EXPECT_THROW(rule.set("momentum", 0.5), InvalidArgument);
  EXPECT_THROW(static_cast<void>(rule.get("momentum")), InvalidArgument);

  const Rule none = Nothing{};
  EXPECT_EQ(none.hyperparameters(), Names{});
  EXPECT_EQ(none.state_names(), Names{});
}

TEST(OwnRule, CopiesAreIndependent) {
  Rule rule = Signum{};
  Rule copy = rule;
  copy.set("beta", 0.5);
  EXPECT_EQ(rule.get("beta"), 0.9);
  rule = copy;
  EXPECT_EQ(rule.get("beta"), 0.5);
  rule = AdamW{};
  EXPECT_EQ(rule.name(), "adamw");
}

TEST(OwnRule, NumbersAreFiniteUnlessItChecksItself) {
  EXPECT_THROW(Rule(Signum{.learning_rate = nan}), InvalidArgument);
  Rule rule = Signum{};
  EXPECT_THROW(rule.set("beta", infinity), InvalidArgument);
  EXPECT_EQ(rule.get("beta"), 0.9);
  EXPECT_THROW(Rule(Warm{.steps = 0.5}), InvalidArgument);
  Rule warm = Warm{};
  EXPECT_THROW(warm.set("steps", 0.0), InvalidArgument);
  warm.set("steps", infinity);
}

TEST(OwnRule, ChecksAllMembersAtOnce) {
  Rule rule = Mixed{};
  EXPECT_THROW(rule.set("a", 0.25), InvalidArgument);
  rule.set(std::vector{0.25, 0.75});
  EXPECT_EQ(rule.get("a"), 0.25);
  EXPECT_EQ(rule.get("b"), 0.75);
  EXPECT_THROW(rule.set(std::vector{0.5, 0.75}), InvalidArgument);
  EXPECT_EQ(rule.get("a"), 0.25);
}

TEST(OwnRule, MayNotTakeTheNameOfAnother) {
  try {
    Rule(Impostor{});
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("\"rmsprop\""), std::string::npos)
        << error.what();
  }
}

TEST(OwnRule, NamesAreChecked) {
  using detail::are_valid_names;
  using List = std::initializer_list<std::string_view>;
  const auto valid = [](List names) {
    return are_valid_names({names.begin(), names.size()}, {"value", "main"});
  };
  EXPECT_TRUE(valid({}));
  EXPECT_TRUE(valid({"a", "B_2"}));
  EXPECT_FALSE(valid({""}));
  EXPECT_FALSE(valid({"a", "b", "a"}));
  EXPECT_FALSE(valid({"main"}));
  EXPECT_FALSE(valid({"a", "value"}));
  EXPECT_FALSE(valid({"a/b"}));
}

/// Writes what it is given: a matrix of 1 where all of it is right.
struct Wholes {
  static constexpr std::string_view name = "wholes";
  static constexpr std::array<std::string_view, 2> state = {"first", "second"};
  double size = 0.5;
  double count = 0.0;  // of prepared()
  static constexpr std::array<Hyperparameter<Wholes>, 1> hyperparameters = {
      {{"size", &Wholes::size}}};

  static std::int64_t work_elements(std::int64_t rows, std::int64_t columns) {
    return 10 * rows + columns;
  }
  Wholes prepared(std::int64_t t) const {
    Wholes copy = *this;
    copy.count = double(t);
    return copy;
  }

  template <class T>
  void operator()(const MatrixUpdate<T>& matrix) const {
    const bool right =
        matrix.rows == 2 && matrix.columns == 3 && matrix.t == 7 &&
        count == 7.0 && matrix.gradient.size() == 6 &&
        matrix.state[0].size() == 6 && matrix.state[1].size() == 6 &&
        matrix.state[2].empty() && matrix.work.size() == 23;
    for (std::size_t i = 0; i < matrix.parameter.size(); ++i) {
      matrix.parameter[i] = right ? T(size) * matrix.gradient[i] : T(-1);
      matrix.state[1][i] = T(1);
    }
    for (T& each : matrix.work) each = T(5);
  }
};

static_assert(MatrixRule<Wholes> && !ElementRule<Wholes>);
static_assert(!MatrixRule<Signum> && !MatrixRule<Muon> && !MatrixRule<int>);

template <class T>
void update_wholes(double factor) {
  const auto prepared =
      detail::prepare_step(Wholes{.size = 0.25}, 7, dtype_of<T>);
  EXPECT_EQ(prepared.update, nullptr);
  const std::vector<T> gradient = {4, -4, 8, 1, 2, 3};
  std::vector<T> parameter(6), first(6), second(6);
  const auto room = detail::matrix_work_elements(Wholes{}, 2, 3, factor != 1.0);
  EXPECT_EQ(room, factor != 1.0 ? 29 : 23);
  std::vector<T> work(std::size_t(room) + 1, T(9));
  detail::MatrixTask task;
  task.step = prepared.step;
  task.gradient_factor = factor;
  task.rows = 2;
  task.columns = 3;
  task.t = prepared.t;
  task.gradient = gradient.data();
  task.main = parameter.data();
  task.state[0] = first.data();
  task.state[1] = second.data();
  task.work = work.data();
  (*prepared.matrix)[sizeof(T) / 8](task);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(parameter[i], T(0.25 * factor) * gradient[i]);
  EXPECT_EQ(first, std::vector<T>(6));
  EXPECT_EQ(second, std::vector<T>(6, T(1)));
  EXPECT_EQ(work.back(), T(9));
}

TEST(OwnMatrixRule, IsCalledWithTheWholeMatrix) {
  for (const double factor : {1.0, 0.5}) {
    update_wholes<float>(factor);
    update_wholes<double>(factor);
  }
}

TEST(OwnMatrixRule, HasNamesNumbersStateAndARuleBeside) {
  Rule rule = Rule(Wholes{.size = 2.0}, Sgd{.learning_rate = 0.5});
  EXPECT_EQ(rule.name(), "wholes");
  EXPECT_EQ(rule.hyperparameters(), Names{"size"});
  EXPECT_EQ(rule.state_names(), (Names{"first", "second"}));
  EXPECT_EQ(rule.get("size"), 2.0);
  ASSERT_NE(rule.beside(), nullptr);
  EXPECT_EQ(rule.beside()->name(), "sgd");
  EXPECT_EQ(rule.beside()->get("learning_rate"), 0.5);
  rule.set("size", 3.0);
  EXPECT_EQ(rule.get("size"), 3.0);
  EXPECT_EQ(rule.beside()->name(), "sgd");
  EXPECT_EQ(Rule(Wholes{}).beside()->name(), "adamw");
  EXPECT_EQ(Rule(Signum{}).beside(), nullptr);
  EXPECT_EQ(Rule(AdamW{}).beside(), nullptr);
  EXPECT_THROW(Rule(Wholes{.size = nan}), InvalidArgument);
}

TEST(MuonRule, HasNamesNumbersStateAndARuleBeside) {
  Rule rule = Muon{};
  EXPECT_EQ(rule.name(), "muon");
  EXPECT_EQ(rule.hyperparameters(),
            (Names{"learning_rate", "momentum", "nesterov", "weight_decay",
                   "maximize"}));
  const std::vector<double> defaults = {0.02, 0.95, 1.0, 0.0, 0.0};
  for (std::size_t i = 0; i < defaults.size(); ++i)
    EXPECT_EQ(rule.get(rule.hyperparameters()[i]), defaults[i]);
  EXPECT_EQ(rule.state_names(), Names{"momentum_buffer"});
  rule.set("nesterov", 0.0);
  EXPECT_FALSE(std::get<Muon>(rule.value()).nesterov);
  EXPECT_EQ(rule.beside()->name(), "adamw");
  EXPECT_EQ(Rule(Muon{}, Lion{}).beside()->name(), "lion");
}

template <class T, class Parameter>
T update_once(const Rule& rule, std::int64_t t, T gradient, T& state,
              Parameter& parameter) {
  const DType dtype = dtype_of<Parameter>;
  const auto prepared = detail::prepare_step(rule, t, dtype);
  EXPECT_EQ(prepared.sign, 1.0);
  EXPECT_EQ(prepared.trust, nullptr);
  T main = T(1);
  detail::UpdateTile tile;
  tile.step = prepared.step;
  tile.gradient_factor = 0.5;
  tile.gradient = &gradient;
  tile.main = &main;
  tile.parameter = &parameter;
  tile.state[0] = &state;
  tile.count = 1;
  (*prepared.update)[std::size_t(dtype)](tile);
  return main;
}

TEST(OwnRule, IsCalledForEveryType) {
  const Rule rule = Signum{.learning_rate = 0.25, .beta = 0.5};
  float state = 1.0f;
  float16 half;
  EXPECT_EQ(update_once(rule, 1, -4.0f, state, half), 1.25f);
  EXPECT_EQ(state, -0.5f);
  EXPECT_EQ(float(half), 1.25f);
  bfloat16 brain;
  EXPECT_EQ(update_once(rule, 1, 4.0f, state, brain), 0.75f);
  EXPECT_EQ(state, 0.75f);
  EXPECT_EQ(float(brain), 0.75f);
  float single;
  EXPECT_EQ(update_once(rule, 1, -1.5f, state, single), 1.0f);
  double wide_state = 0.0, wide;
  EXPECT_EQ(update_once(rule, 1, 1e-200, wide_state, wide), 0.75);
  EXPECT_EQ(wide_state, 0.25e-200);
}

TEST(OwnRule, IsPreparedForTheUpdateCount) {
  const Rule rule = Warm{};
  float unused = 0.0f, parameter;
  EXPECT_EQ(update_once(rule, 1, 2.0f, unused, parameter), 0.75f);
  EXPECT_EQ(update_once(rule, 3, 2.0f, unused, parameter), 0.25f);
  EXPECT_EQ(update_once(rule, 100, 2.0f, unused, parameter), 0.0f);
}

}  // namespace
}  // namespace kzero
