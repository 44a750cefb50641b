// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Muon's update of one matrix through its prepared step, against plain loops in
// float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/prepared_step.hpp"
#include "support/muon_oracle.hpp"

namespace kzero::test {
namespace {

using detail::MatrixTask;

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
};

constexpr Shape shapes[] = {{1, 1},   {1, 23},  {23, 1},  {2, 2},
                            {16, 16}, {37, 37}, {64, 64}, {61, 13},
                            {13, 61}, {128, 6}, {6, 128}, {97, 89}};

double start(std::size_t i) { return std::sin(0.7 * double(i) + 1.0); }

/// Dense in all directions: not of low rank.
double gradient(std::int64_t t, std::size_t i) {
  const double x = std::sin(double(i + 1) * 12.9898 + double(t) * 78.233);
  return x * 43758.5453 - std::floor(x * 43758.5453) - 0.5;
}

/// One matrix in memory of the test's own, with a guard behind the work memory.
template <class T>
class Updated {
 public:
  Updated(const Rule& rule, Shape shape, T left_in_work = T(0))
      : rule_(rule), shape_(shape), oracle_(rows(), columns()) {
    for (std::size_t i = 0; i < size(); ++i) {
      parameter.push_back(static_cast<T>(start(i)));
      oracle_.parameter.values[i] = double(parameter.back());
    }
    buffer.resize(size());
    const auto elements = static_cast<std::size_t>(
        detail::matrix_work_elements(rule_, shape.rows, shape.columns, true));
    work_.assign(elements, left_in_work);
    work_.resize(elements + 64, T(7));
  }

  void update(std::int64_t t, double factor = 1.0) {
    std::vector<T> given;
    PlainMatrix whole(rows(), columns());
    for (std::size_t i = 0; i < size(); ++i) {
      given.push_back(static_cast<T>(gradient(t, i)));
      whole.values[i] = factor * double(given.back());
    }
    const auto prepared = detail::prepare_step(rule_, t, dtype_of<T>);
    ASSERT_EQ(prepared.update, nullptr);
    ASSERT_NE(prepared.matrix, nullptr);
    MatrixTask task;
    task.step = prepared.step;
    task.gradient_factor = factor * prepared.sign;
    task.rows = shape_.rows;
    task.columns = shape_.columns;
    task.t = prepared.t;
    task.gradient = given.data();
    task.main = parameter.data();
    task.state[0] = buffer.data();
    task.work = work_.data();
    const auto before = given;
    (*prepared.matrix)[sizeof(T) / 8](task);
    EXPECT_EQ(given, before) << "the averaged gradient can be asked for";
    for (std::size_t i = work_.size() - 64; i < work_.size(); ++i)
      ASSERT_EQ(work_[i], T(7)) << "written behind the work memory";
    oracle_.update(std::get<Muon>(rule_.value()), whole);
  }

  void expect_near(double relative) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const double expected = oracle_.parameter.values[i];
      ASSERT_NEAR(double(parameter[i]), expected,
                  relative * (std::abs(expected) + 1.0))
          << "element " << i;
      const double momentum = oracle_.buffer.values[i];
      ASSERT_NEAR(double(buffer[i]), momentum,
                  relative * (std::abs(momentum) + 0.1))
          << "element " << i;
    }
  }

  std::vector<T> parameter;
  std::vector<T> buffer;

 private:
  std::size_t rows() const { return static_cast<std::size_t>(shape_.rows); }
  std::size_t columns() const {
    return static_cast<std::size_t>(shape_.columns);
  }
  std::size_t size() const { return rows() * columns(); }

  Rule rule_;
  Shape shape_;
  MuonOracle oracle_;
  std::vector<T> work_;
};

constexpr Muon plain = {.learning_rate = 0.5, .nesterov = false};
constexpr Muon kinds[] = {
    Muon{}, Muon{.learning_rate = 0.5}, plain,
    Muon{.learning_rate = 0.25, .momentum = 0.5, .weight_decay = 0.5},
    Muon{.learning_rate = 0.25, .momentum = 0.0, .maximize = true}};

template <class T>
void check_updates(double relative) {
  for (const Muon& rule : kinds)
    for (const Shape shape : shapes) {
      SCOPED_TRACE(testing::Message()
                   << shape.rows << " x " << shape.columns << ", rate "
                   << rule.learning_rate << ", nesterov " << rule.nesterov);
      Updated<T> matrix(rule, shape);
      for (std::int64_t t = 1; t <= 4; ++t)
        matrix.update(t, t == 3 ? 0.125 : 1.0);
      matrix.expect_near(relative);
    }
}

// The tolerances of every rule, to the size of parameter and step. Directions
// with small singular values are made up to 485 times as large, with the
// rounding errors in them.
TEST(Muon, FollowsItsEquations) {
  check_updates<double>(1e-12);
  check_updates<float>(1e-5);
}

TEST(Muon, MovesByMatricesWithSingularValuesNearOne) {
  constexpr Shape shape = {24, 24};
  Updated<double> matrix(plain, shape);
  const auto before = matrix.parameter;
  matrix.update(1);
  double squares = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double moved = (before[i] - matrix.parameter[i]) / 0.5;
    squares += moved * moved;
  }
  EXPECT_GT(std::sqrt(squares / 24.0), 0.6);
  EXPECT_LT(std::sqrt(squares / 24.0), 1.2);
}

TEST(Muon, StaysWhereThereIsNoGradient) {
  Updated<float> matrix(Muon{.learning_rate = 0.5, .weight_decay = 0.5},
                        {9, 5});
  const auto before = matrix.parameter;
  matrix.update(1, 0.0);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(matrix.parameter[i], before[i] * 0.75f);
}

template <class T>
void check_work_memory() {
  for (const Shape shape : shapes) {
    Updated<T> zeros(Muon{}, shape);
    Updated<T> rubbish(Muon{}, shape, std::numeric_limits<T>::quiet_NaN());
    for (std::int64_t t = 1; t <= 2; ++t) {
      zeros.update(t);
      rubbish.update(t);
    }
    EXPECT_EQ(zeros.parameter, rubbish.parameter);
  }
}

TEST(Muon, DoesNotSeeWhatWasLeftInTheWorkMemory) {
  check_work_memory<float>();
  check_work_memory<double>();
}

}  // namespace
}  // namespace kzero::test
