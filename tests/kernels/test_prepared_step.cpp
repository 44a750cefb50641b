// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Rules through their prepared steps and kernels, against the equations
// written out here in double, for every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/every_set.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/prepared_step.hpp"

namespace kzero::detail {
namespace {

/// A parameter and its state, by the equations of the rule's comment.
struct Element {
  double p = 0.0;
  double s[3] = {};
};

double power(double base, std::int64_t t) {
  double result = 1.0;
  for (std::int64_t i = 0; i < t; ++i) result *= base;
  return result;
}

template <class AnyAdam>
double adam_step(const AnyAdam& r, std::int64_t t, double g, Element& e) {
  double &m = e.s[0], &v = e.s[1], &largest = e.s[2];
  m = r.beta1 * m + (1 - r.beta1) * g;
  v = r.beta2 * v + (1 - r.beta2) * g * g;
  double used = v;
  if constexpr (requires { r.amsgrad; }) {
    largest = std::max(largest, v);
    if (r.amsgrad) used = largest;
  }
  const double corrected = m / (1 - power(r.beta1, t));
  return corrected /
         (std::sqrt(used) / std::sqrt(1 - power(r.beta2, t)) + r.epsilon);
}

void expect(const AdamW& r, std::int64_t t, double g, Element& e) {
  e.p *= 1 - r.learning_rate * r.weight_decay;
  e.p -= r.learning_rate * adam_step(r, t, g, e);
}

void expect(const Adam& r, std::int64_t t, double g, Element& e) {
  g += r.weight_decay * e.p;
  e.p -= r.learning_rate * adam_step(r, t, g, e);
}

void expect(const Sgd& r, std::int64_t t, double g, Element& e) {
  g += r.weight_decay * e.p;
  if (r.momentum > 0) {
    double& buffer = e.s[0];
    buffer = t == 1 ? g : r.momentum * buffer + (1 - r.dampening) * g;
    g = r.nesterov ? g + r.momentum * buffer : buffer;
  }
  e.p -= r.learning_rate * g;
}

void expect(const Adagrad& r, std::int64_t t, double g, Element& e) {
  g += r.weight_decay * e.p;
  if (t == 1) e.s[0] = r.initial_accumulator_value;
  e.s[0] += g * g;
  e.p -= r.learning_rate / (1 + double(t - 1) * r.learning_rate_decay) * g /
         (std::sqrt(e.s[0]) + r.epsilon);
}

void expect(const RmsProp& r, std::int64_t, double g, Element& e) {
  double &s = e.s[0], &average = e.s[1];
  double& buffer = r.centered ? e.s[2] : e.s[1];
  g += r.weight_decay * e.p;
  s = r.alpha * s + (1 - r.alpha) * g * g;
  double d = std::sqrt(s);
  if (r.centered) {
    average = r.alpha * average + (1 - r.alpha) * g;
    d = std::sqrt(s - average * average);
  }
  double change = g / (d + r.epsilon);
  if (r.momentum > 0) change = buffer = r.momentum * buffer + change;
  e.p -= r.learning_rate * change;
}

void expect(const Lion& r, std::int64_t, double g, Element& e) {
  double& m = e.s[0];
  e.p *= 1 - r.learning_rate * r.weight_decay;
  const double c = r.beta1 * m + (1 - r.beta1) * g;
  e.p -= r.learning_rate * (c > 0 ? 1 : c < 0 ? -1 : 0);
  m = r.beta2 * m + (1 - r.beta2) * g;
}

/// The same of our kernels: a parameter of n elements, updated in one tile.
template <class T>
class Trained {
 public:
  Trained(const Rule& rule, std::vector<T> start)
      : rule_(rule), main_(std::move(start)) {
    for (auto& array : state_) array.assign(main_.size(), T(0));
  }

  void step(std::vector<T> gradient) {
    const DType dtype = dtype_of<T>;
    const auto type = std::size_t(dtype);
    const PreparedStep prepared = prepare_step(rule_, ++t_, dtype);
    UpdateTile tile;
    tile.step = prepared.step;
    tile.gradient_factor = prepared.sign;
    tile.gradient = gradient.data();
    tile.main = main_.data();
    for (std::size_t k = 0; k < rule_.state_names().size(); ++k)
      tile.state[k] = state_[k].data();
    tile.count = std::int64_t(main_.size());
    const FlushDenormals flush;
    if (prepared.trust != nullptr) {
      TrustSums sums;
      (*prepared.trust)[type](tile, sums);
      tile.trust_ratio = trust_ratio(rule_, sums);
      tile.gradient = nullptr;
    }
    (*prepared.update)[type](tile);
  }

  const std::vector<T>& main() const { return main_; }
  const std::vector<T>& state(std::size_t k) const { return state_[k]; }

 private:
  Rule rule_;
  std::vector<T> main_;
  std::vector<T> state_[3];
  std::int64_t t_ = 0;
};

constexpr std::size_t count = 301;
constexpr int steps = 25;

std::vector<float> gradient_of(int step) {
  auto gradient = random_values<float>(count, 100u + unsigned(step));
  if (step % 3 == 0) gradient[7] = 0.0f;
  return gradient;
}

template <class T>
std::vector<T> cast(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

template <class T, class R>
void check_rule(const R& rule) {
  SCOPED_TRACE(Rule(rule).name());
  const auto start = random_values<float>(count, 1);
  Trained<T> trained(rule, cast<T>(start));
  std::vector<Element> expected(count);
  for (std::size_t i = 0; i < count; ++i) expected[i].p = double(start[i]);
  const double relative = sizeof(T) == 8 ? 1e-12 : 1e-5;
  const double absolute = sizeof(T) == 8 ? 1e-14 : 1e-6;
  for (int step = 1; step <= steps; ++step) {
    const auto gradient = gradient_of(step);
    trained.step(cast<T>(gradient));
    for (std::size_t i = 0; i < count; ++i) {
      const double g = double(gradient[i]);
      expect(rule, step, rule.maximize ? -g : g, expected[i]);
      ASSERT_NEAR(double(trained.main()[i]), expected[i].p,
                  absolute + relative * std::abs(expected[i].p))
          << "step " << step << ", element " << i;
    }
  }
  for (std::size_t k = 0; k < Rule(rule).state_names().size(); ++k)
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_NEAR(double(trained.state(k)[i]), expected[i].s[k],
                  absolute + relative * std::abs(expected[i].s[k]))
          << "array " << k << ", element " << i;
}

template <class F>
void for_each_element_wise_rule(F&& f) {
  f(AdamW{.learning_rate = 0.01, .weight_decay = 0.1});
  f(AdamW{.learning_rate = 0.01, .amsgrad = true, .maximize = true});
  f(Adam{.learning_rate = 0.01});
  f(Adam{.learning_rate = 0.01, .weight_decay = 0.1, .maximize = true});
  f(Adam{.learning_rate = 0.01, .weight_decay = 0.1, .amsgrad = true});
  f(Sgd{.learning_rate = 0.01, .weight_decay = 0.1, .maximize = true});
  f(Sgd{.learning_rate = 0.01, .momentum = 0.9, .dampening = 0.5});
  f(Sgd{.learning_rate = 0.01, .momentum = 0.9, .nesterov = true});
  f(Adagrad{.learning_rate = 0.01});
  f(Adagrad{.learning_rate = 0.01,
            .learning_rate_decay = 0.1,
            .weight_decay = 0.1,
            .initial_accumulator_value = 0.25,
            .epsilon = 1e-6,
            .maximize = true});
  f(RmsProp{.learning_rate = 0.001});
  f(RmsProp{.learning_rate = 0.001, .alpha = 0.9, .momentum = 0.5});
  f(RmsProp{.learning_rate = 0.001, .weight_decay = 0.1, .centered = true});
  f(RmsProp{.learning_rate = 0.001,
            .epsilon = 1e-4,
            .momentum = 0.5,
            .centered = true,
            .maximize = true});
  f(Lion{.learning_rate = 0.01});
  f(Lion{.learning_rate = 0.01, .weight_decay = 0.1, .maximize = true});
}

using Rules = EverySet;

TEST_F(Rules, FollowTheirEquations) {
  for_each_set([] {
    for_each_element_wise_rule([](const auto& rule) {
      check_rule<double>(rule);
      check_rule<float>(rule);
    });
  });
}

// The ratio is that of the whole parameter.
template <class T>
void check_lamb(const Lamb& rule) {
  const auto start = random_values<float>(count, 1);
  Trained<T> trained(rule, cast<T>(start));
  std::vector<Element> expected(count);
  for (std::size_t i = 0; i < count; ++i) expected[i].p = double(start[i]);
  const double relative = sizeof(T) == 8 ? 1e-12 : 1e-5;
  for (int step = 1; step <= steps; ++step) {
    const auto gradient = gradient_of(step);
    trained.step(cast<T>(gradient));
    std::vector<double> u(count);
    double squares_p = 0.0, squares_u = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      const double g = double(gradient[i]);
      u[i] = adam_step(rule, step, rule.maximize ? -g : g, expected[i]) +
             rule.weight_decay * expected[i].p;
      squares_p += expected[i].p * expected[i].p;
      squares_u += u[i] * u[i];
    }
    const double ratio =
        rule.weight_decay == 0.0 ? 1.0 : std::sqrt(squares_p / squares_u);
    for (std::size_t i = 0; i < count; ++i) {
      expected[i].p -= rule.learning_rate * ratio * u[i];
      ASSERT_NEAR(double(trained.main()[i]), expected[i].p,
                  relative * (0.1 + std::abs(expected[i].p)))
          << "step " << step << ", element " << i;
    }
  }
}

TEST_F(Rules, LambFollowsItsEquations) {
  for_each_set([] {
    for (const Lamb& rule :
         {Lamb{.learning_rate = 0.01}, Lamb{.weight_decay = 0.0},
          Lamb{.weight_decay = 0.1, .maximize = true}}) {
      check_lamb<double>(rule);
      check_lamb<float>(rule);
    }
  });
}

template <class T>
void check_same_bits(const Rule& rule) {
  SCOPED_TRACE(rule.name());
  std::vector<Trained<T>> trained;
  EverySet::for_each_set([&] {
    trained.emplace_back(rule, cast<T>(random_values<float>(count, 1)));
    for (int step = 1; step <= steps; ++step)
      trained.back().step(cast<T>(gradient_of(step)));
  });
  for (const Trained<T>& each : trained) {
    EXPECT_EQ(each.main(), trained.front().main());
    for (std::size_t k = 0; k < 3; ++k)
      EXPECT_EQ(each.state(k), trained.front().state(k));
  }
}

TEST_F(Rules, HaveTheSameBitsOnAllSets) {
  for_each_element_wise_rule([](const auto& rule) {
    check_same_bits<float>(rule);
    check_same_bits<double>(rule);
  });
  check_same_bits<float>(Lamb{});
  check_same_bits<double>(Lamb{});
}

template <class T>
T one_step_from_one(const Rule& rule, T gradient) {
  Trained<T> trained(rule, {T(1)});
  trained.step({gradient});
  return trained.main()[0];
}

// Golden value: t = 1, g = eps = 1e-8, lr = 1e-3, no decay: a step of 5.0e-4.
TEST_F(Rules, EpsilonStandsOutsideTheRootAfterCorrection) {
  for_each_set([] {
    for (const Rule& rule :
         {Rule(AdamW{.weight_decay = 0.0}), Rule(Adam{}),
          Rule(Adam{.amsgrad = true}),
          Rule(Lamb{.epsilon = 1e-8, .weight_decay = 0.0})}) {
      EXPECT_NEAR(1.0 - one_step_from_one(rule, 1e-8), 5.0e-4, 1e-12);
      EXPECT_NEAR(1.0f - one_step_from_one(rule, 1e-8f), 5.0e-4f, 1e-7);
    }
  });
}

// Rounding can leave s - avg^2 below zero, whose root would be NaN.
TEST_F(Rules, CenteredRmsPropStaysFinite) {
  const auto gradient = random_values<float>(count, 9);
  const RmsProp rule{.learning_rate = 1e-6, .alpha = 0.9, .centered = true};
  for_each_set([&] {
    Trained<float> trained(rule, std::vector<float>(count, 1.0f));
    int below = 0;
    for (int step = 0; step < 300; ++step) {
      trained.step(gradient);
      for (std::size_t i = 0; i < count; ++i) {
        const float average = trained.state(1)[i];
        below += trained.state(0)[i] - average * average < 0.0f ? 1 : 0;
        ASSERT_TRUE(std::isfinite(trained.main()[i])) << step << ", " << i;
      }
    }
    EXPECT_GT(below, 0) << "the test tests nothing";
  });
}

TEST_F(Rules, WhatIsNotFiniteInTheGradientIsSeenInTheParameter) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_each_set([&] {
    for_each_element_wise_rule([&](const auto& rule) {
      EXPECT_TRUE(std::isnan(one_step_from_one<float>(rule, nan)))
          << Rule(rule).name();
    });
  });
}

TEST_F(Rules, LionMovesNothingWithoutASign) {
  for_each_set([] {
    EXPECT_EQ(one_step_from_one<float>(Lion{}, 0.0f), 1.0f);
    EXPECT_EQ(one_step_from_one<double>(Lion{}, -0.0), 1.0);
  });
}

TEST(PreparedStep, SignIsTurnedForMaximize) {
  EXPECT_EQ(prepare_step(Sgd{}, 1, DType::float32).sign, 1.0);
  EXPECT_EQ(prepare_step(Sgd{.maximize = true}, 1, DType::float32).sign, -1.0);
  EXPECT_EQ(prepare_step(Lamb{.maximize = true}, 1, DType::float32).sign, -1.0);
}

TEST(PreparedStep, LambAloneHasATrustRatio) {
  EXPECT_TRUE(uses_trust_ratio(Lamb{}));
  EXPECT_NE(prepare_step(Lamb{}, 1, DType::float64).trust, nullptr);
  for_each_element_wise_rule([](const auto& rule) {
    EXPECT_FALSE(uses_trust_ratio(rule));
    EXPECT_EQ(prepare_step(rule, 1, DType::float64).trust, nullptr);
  });
}

TEST(PreparedStep, TrustRatioIsOneWhereANormIsZero) {
  EXPECT_EQ(trust_ratio(Lamb{}, {9.0, 4.0}), 1.5);
  EXPECT_EQ(trust_ratio(Lamb{}, {0.0, 4.0}), 1.0);
  EXPECT_EQ(trust_ratio(Lamb{}, {9.0, 0.0}), 1.0);
  EXPECT_EQ(trust_ratio(Lamb{.weight_decay = 0.0}, {9.0, 4.0}), 1.0);
}

}  // namespace
}  // namespace kzero::detail
