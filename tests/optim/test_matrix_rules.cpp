// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Rules for matrices, Muon and others, from the optimizer to the checkpoint:
// every matrix lies whole on one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "optim/overlap_model.hpp"
#include "support/muon_oracle.hpp"
#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"
#include "support/whole_partitions.hpp"

namespace kzero::test {
namespace {

using Extents = std::vector<std::int64_t>;

/// Square, tall, wide, one row, one column, without elements; and what is no
/// matrix.
const std::vector<Extents> shapes = {{24, 24},  {37},    {31, 7}, {},
                                     {7, 31},   {1, 19}, {19, 1}, {0, 5},
                                     {2, 3, 4}, {5, 0},  {13, 13}};

std::int64_t size_of_shape(const Extents& extents) {
  std::int64_t size = 1;
  for (const std::int64_t each : extents) size *= each;
  return size;
}

double start(std::int64_t p, std::int64_t i) {
  return std::sin(1.0 + double(i) * 0.7 + double(p));
}

/// Of all ranks together: multiples of 1/64 that every type holds.
double gradient(int step, std::int64_t p, std::int64_t i) {
  auto bits = static_cast<std::uint64_t>(step * 1'000'003 + p * 10'007 + i + 1);
  bits *= 0x9e3779b97f4a7c15u;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9u;
  return double(std::int64_t((bits >> 32) % 255) - 127) / 64.0;
}

std::shared_ptr<Communicator> alone() {
  return make_communicator(MPI_COMM_SELF);
}

ParameterSet model_of(DType dtype,
                      std::optional<DType> gradient_dtype = std::nullopt) {
  ParameterSet model;
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    ParameterOptions kind = typed(dtype);
    kind.gradient_dtype = gradient_dtype;
    model.add(detail::concat("p", p), shapes[p], kind);
  }
  return model;
}

OptimizerOptions options_of(const Rule& rule, Partition partition) {
  OptimizerOptions options;
  options.rule = rule;
  options.reduction = Reduction::sum;
  options.plan.partition = partition;
  options.plan.bucket_bytes = 500;
  return options;
}

void write_start(ShardedOptimizer& optimizer) {
  for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
    write_parameter(optimizer, {p}, [&](auto i) { return start(p, i); });
}

/// The gradient comes from one rank, the others give zeros.
void fill(ShardedOptimizer& optimizer, int step) {
  const auto& communicator = *optimizer.communicator();
  for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p) {
    const bool mine = (p + step) % communicator.size() == communicator.rank();
    fill_gradient(optimizer, {p},
                  [&](auto i) { return mine ? gradient(step, p, i) : 0.0; });
  }
}

void train(ShardedOptimizer& optimizer, int first, int last) {
  for (int step = first; step < last; ++step) {
    fill(optimizer, step);
    ASSERT_TRUE(optimizer.step().updated());
  }
  optimizer.wait_parameters();
}

/// AdamW of one parameter that is no matrix, in float64.
struct AdamWOracle {
  explicit AdamWOracle(std::size_t size) : p(size), m(size), v(size) {}

  void update(const AdamW& rule, const std::vector<double>& gradients) {
    ++t;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = gradients[i];
      m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g;
      v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g * g;
      p[i] *= 1 - rule.learning_rate * rule.weight_decay;
      p[i] -= rule.learning_rate / (1 - std::pow(rule.beta1, t)) * m[i] /
              (std::sqrt(v[i]) / std::sqrt(1 - std::pow(rule.beta2, t)) +
               rule.epsilon);
    }
  }

  std::vector<double> p, m, v;
  int t = 0;
};

/// All parameters after steps [0, last), whose gradients come with a factor.
std::vector<double> expected_after(int last, const Muon& muon,
                                   const AdamW& beside,
                                   const std::vector<double>& factors = {}) {
  std::vector<double> all;
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    const auto size = static_cast<std::size_t>(size_of_shape(shapes[p]));
    const bool is_matrix = shapes[p].size() == 2;
    MuonOracle matrix(is_matrix ? std::size_t(shapes[p][0]) : 0,
                      is_matrix ? std::size_t(shapes[p][1]) : 0);
    AdamWOracle other(is_matrix ? 0 : size);
    auto& values = is_matrix ? matrix.parameter.values : other.p;
    for (std::size_t i = 0; i < size; ++i)
      values[i] = start(std::int64_t(p), std::int64_t(i));
    for (int step = 0; step < last; ++step) {
      std::vector<double> slope(size);
      for (std::size_t i = 0; i < size; ++i)
        slope[i] = gradient(step, std::int64_t(p), std::int64_t(i)) *
                   (factors.empty() ? 1.0 : factors[std::size_t(step)]);
      if (is_matrix) {
        PlainMatrix whole(matrix.parameter.rows, matrix.parameter.columns);
        whole.values = slope;
        if (size > 0) matrix.update(muon, whole);
      } else {
        other.update(beside, slope);
      }
    }
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void expect_near(const std::vector<double>& got,
                 const std::vector<double>& expected, double relative) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], relative * (std::abs(expected[i]) + 1.0))
        << "element " << i;
}

class MatrixRules : public testing::Test {
 protected:
  /// The optimizer with its start values, once for each partition of whole
  /// parameters.
  template <class F>
  void for_each_partition(const ParameterSet& model, OptimizerOptions options,
                          F&& f) {
    for (const Partition partition : whole_partitions(ranks)) {
      SCOPED_TRACE(testing::Message() << "partition " << int(partition));
      options.plan.partition = partition;
      ShardedOptimizer optimizer(world(), model, options);
      write_start(optimizer);
      f(optimizer);
    }
  }

  const int ranks = world()->size();
};

constexpr Muon kinds[] = {
    Muon{}, Muon{.learning_rate = 0.1, .momentum = 0.5, .nesterov = false},
    Muon{.learning_rate = 0.1, .weight_decay = 0.5, .maximize = true}};

// A float32 run follows within 1e-5, with what the iteration makes of its
// rounding errors: the step's part of the parameter is about the learning rate.
TEST_F(MatrixRules, MuonFollowsAnIndependentComputation) {
  for (const Muon& muon : kinds)
    for (const DType dtype : {DType::float32, DType::float64}) {
      const AdamW beside{.learning_rate = 0.01, .weight_decay = 0.1};
      SCOPED_TRACE(testing::Message()
                   << to_string(dtype) << ", rate " << muon.learning_rate);
      for_each_partition(model_of(dtype), options_of(Rule(muon, beside), {}),
                         [&](ShardedOptimizer& optimizer) {
                           ASSERT_GT(optimizer.plan().buckets().size(), 2u);
                           train(optimizer, 0, 4);
                           expect_near(read_all(optimizer),
                                       expected_after(4, muon, beside),
                                       dtype == DType::float64 ? 1e-12 : 1e-5);
                         });
    }
}

TEST_F(MatrixRules, AdamWStandsBesideWhereNothingIsGiven) {
  for_each_partition(model_of(DType::float64), options_of(Muon{}, {}),
                     [&](ShardedOptimizer& optimizer) {
                       train(optimizer, 0, 3);
                       expect_near(read_all(optimizer),
                                   expected_after(3, Muon{}, AdamW{}), 1e-12);
                     });
}

TEST_F(MatrixRules, HaveTheBitsOfOneRank) {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    ShardedOptimizer reference(alone(), model_of(dtype),
                               options_of(Muon{}, Partition::elements));
    write_start(reference);
    train(reference, 0, 4);
    for_each_partition(model_of(dtype), options_of(Muon{}, {}),
                       [&](ShardedOptimizer& optimizer) {
                         train(optimizer, 0, 4);
                         EXPECT_EQ(read_all(optimizer), read_all(reference));
                       });
  }
}

TEST_F(MatrixRules, HaveTheSameBitsInEveryMode) {
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    ShardedOptimizer reference(alone(), model_of(DType::float32),
                               options_of(Muon{}, Partition::elements));
    write_start(reference);
    train(reference, 0, 3);
    for_each_partition(
        model_of(DType::float32), mode.in(options_of(Muon{}, {})),
        [&](ShardedOptimizer& optimizer) {
          for (int step = 0; step < 3; ++step) {
            optimizer.wait_parameters();
            fill(optimizer, step);
            for (std::int64_t p = optimizer.parameters().size(); p-- > 0;)
              optimizer.mark_ready({p});
            optimizer.step();
          }
          optimizer.wait_parameters();
          EXPECT_EQ(read_all(optimizer), read_all(reference));
        });
  }
}

template <class Half>
double rounded(double value) {
  return double(float(Half(float(value))));
}

// Main parameters carry what 16 bits do not hold.
TEST_F(MatrixRules, RoundMainParametersTo16Bits) {
  const auto check = [this](DType dtype, double (*round)(double)) {
    for_each_partition(
        model_of(dtype), options_of(Muon{.learning_rate = 1e-4}, {}),
        [&](ShardedOptimizer& optimizer) {
          ShardedOptimizer twin(world(), model_of(DType::float32),
                                optimizer.options());
          for (std::int64_t p = 0; p < std::ssize(shapes); ++p)
            write_parameter(twin, {p},
                            [&](auto i) { return round(start(p, i)); });
          train(optimizer, 0, 8);
          train(twin, 0, 8);
          const auto got = read_all(optimizer), main = read_all(twin);
          for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_EQ(got[i], round(main[i])) << i;
        });
  };
  check(DType::bfloat16, rounded<bfloat16>);
  check(DType::float16, rounded<float16>);
}

TEST_F(MatrixRules, TakeGradientsOfAnyType) {
  for_each_partition(model_of(DType::float32), options_of(Muon{}, {}),
                     [&](ShardedOptimizer& expected) {
                       train(expected, 0, 3);
                       for (const DType dtype :
                            {DType::float16, DType::bfloat16, DType::float64}) {
                         ShardedOptimizer optimizer(
                             world(), model_of(DType::float32, dtype),
                             expected.options());
                         write_start(optimizer);
                         train(optimizer, 0, 3);
                         EXPECT_EQ(read_all(optimizer), read_all(expected))
                             << to_string(dtype);
                       }
                     });
}

TEST_F(MatrixRules, UpdateMatricesInMemoryOfTheCaller) {
  ParameterSet model;
  std::vector<Own> own;
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    own.emplace_back(shapes[p], static_cast<Order>(p % 3));
    own.back().add_to(model, detail::concat("p", p));
  }
  ShardedOptimizer reference(alone(), model_of(DType::float32),
                             options_of(Muon{}, Partition::elements));
  write_start(reference);
  train(reference, 0, 3);
  for (const Partition partition : whole_partitions(ranks)) {
    for (std::size_t p = 0; p < own.size(); ++p)
      own[p].value.fill([&](auto i) { return start(std::int64_t(p), i); });
    ShardedOptimizer optimizer(world(), model, options_of(Muon{}, partition));
    for (int step = 0; step < 3; ++step) {
      for (std::size_t p = 0; p < own.size(); ++p) {
        const bool mine = (int(p) + step) % ranks == world()->rank();
        own[p].gradient.fill([&](auto i) {
          return mine ? gradient(step, std::int64_t(p), i) : 0.0;
        });
      }
      optimizer.step();
    }
    std::vector<double> got;
    for (const Own& each : own) {
      const auto values = each.value.values();
      got.insert(got.end(), values.begin(), values.end());
      EXPECT_TRUE(each.gaps_are_whole());
    }
    EXPECT_EQ(got, read_all(reference));
  }
}

TEST_F(MatrixRules, SeeTheClippedGradient) {
  const Muon muon{.learning_rate = 0.1};
  OptimizerOptions options = options_of(muon, {});
  options.clip_norm = 5.0;
  for_each_partition(
      model_of(DType::float64), options, [&](ShardedOptimizer& optimizer) {
        std::vector<double> factors;
        for (int step = 0; step < 3; ++step) {
          fill(optimizer, step);
          const double norm = optimizer.step().gradient_norm();
          ASSERT_GT(norm, 6.0);
          factors.push_back(double(float(5.0 / (norm + 1e-6))));
        }
        expect_near(read_all(optimizer),
                    expected_after(3, muon, AdamW{}, factors), 1e-12);
      });
}

// What is read after a step is not what was clipped or negated.
TEST_F(MatrixRules, LeaveTheAveragedGradient) {
  OptimizerOptions options = options_of(Muon{.maximize = true}, {});
  options.clip_norm = 1.0;
  for_each_partition(
      model_of(DType::float32), options, [&](ShardedOptimizer& optimizer) {
        train(optimizer, 0, 1);
        const auto segments = optimizer.segments({0});
        const auto views = optimizer.averaged_gradient<float>({0});
        ASSERT_EQ(views.size(), segments.size());
        for (std::size_t s = 0; s < views.size(); ++s)
          for (std::int64_t i = 0; i < segments[s].in_parameter.size(); ++i)
            ASSERT_EQ(double(views[s](std::size_t(i))),
                      gradient(0, 0, segments[s].in_parameter.begin + i));
      });
}

TEST_F(MatrixRules, KeepWhatIsUnmarked) {
  ParameterSet model;
  for (int p = 0; p < 4; ++p) {
    ParameterOptions kind;
    kind.unmarked = Unmarked::keep;
    model.add(detail::concat("p", p), {6, 5}, kind);
  }
  for_each_partition(
      model, options_of(Muon{}, {}), [&](ShardedOptimizer& optimizer) {
        train(optimizer, 0, 1);
        const auto before = read_parameter(optimizer, {2});
        fill(optimizer, 1);
        for (const std::int64_t p : {0, 1, 3}) optimizer.mark_ready({p});
        optimizer.step();
        EXPECT_EQ(read_parameter(optimizer, {2}), before);
        EXPECT_EQ(optimizer.update_count({2}), 1);
        EXPECT_EQ(optimizer.update_count({1}), 2);
        // Its momentum has stayed too: the next step is its second.
        ShardedOptimizer twin(world(), model, optimizer.options());
        write_start(twin);
        train(twin, 0, 1);
        train(optimizer, 2, 3);
        train(twin, 2, 3);
        EXPECT_EQ(read_parameter(optimizer, {2}), read_parameter(twin, {2}));
        EXPECT_NE(read_parameter(optimizer, {1}), read_parameter(twin, {1}));
      });
}

TEST_F(MatrixRules, SkipStepsThatAreNotFinite) {
  OptimizerOptions options = options_of(Muon{}, {});
  options.nonfinite = Nonfinite::skip;
  for_each_partition(
      model_of(DType::float32), options, [&](ShardedOptimizer& optimizer) {
        train(optimizer, 0, 1);
        const auto before = snapshot(optimizer, MPI_COMM_WORLD);
        fill(optimizer, 1);
        if (world()->rank() == 0)
          fill_gradient(optimizer, {0}, [](auto) { return HUGE_VAL; });
        EXPECT_FALSE(optimizer.step().updated());
        auto after = snapshot(optimizer, MPI_COMM_WORLD);
        for (const char* name : {"skipped", "skipped in a row"})
          after[name] = before.at(name);
        EXPECT_TRUE(equal(after, before));
      });
}

/// Momentum, each row of it to length 1: a rule with state, work memory and a
/// number that depends on t.
struct RowNormalized {
  static constexpr std::string_view name = "row_normalized";
  static constexpr std::array<std::string_view, 1> state = {"momentum"};
  double learning_rate = 0.5;
  double momentum = 0.5;
  double step_size = 0.0;  // of prepared()
  static constexpr Hyperparameter<RowNormalized> hyperparameters[] = {
      {"learning_rate", &RowNormalized::learning_rate},
      {"momentum", &RowNormalized::momentum}};

  static std::int64_t work_elements(std::int64_t rows, std::int64_t) {
    return rows;
  }

  RowNormalized prepared(std::int64_t t) const {
    RowNormalized copy = *this;
    copy.step_size = learning_rate / double(t);
    return copy;
  }

  template <class T>
  void operator()(const MatrixUpdate<T>& matrix) const {
    const auto columns = static_cast<std::size_t>(matrix.columns);
    const auto buffer = matrix.state[0];
    if (std::ssize(matrix.work) != matrix.rows || !matrix.state[1].empty() ||
        std::ssize(buffer) != matrix.rows * matrix.columns || matrix.t < 1)
      return;
    std::fill(matrix.work.begin(), matrix.work.end(), T(0));
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      buffer[i] = T(momentum) * buffer[i] + matrix.gradient[i];
      matrix.work[i / columns] += buffer[i] * buffer[i];
    }
    for (std::size_t i = 0; i < buffer.size(); ++i)
      matrix.parameter[i] -= T(step_size) * buffer[i] /
                             (std::sqrt(matrix.work[i / columns]) + T(1));
  }
};

void expect_row_normalized(const std::vector<double>& got, const Extents& shape,
                           std::int64_t p, const std::vector<double>& factors) {
  const std::int64_t columns = shape[1];
  std::vector<double> value, momentum(got.size());
  for (std::int64_t i = 0; i < std::ssize(got); ++i)
    value.push_back(start(p, i));
  for (std::size_t t = 1; t <= factors.size(); ++t) {
    std::vector<double> squares(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      momentum[i] = 0.5 * momentum[i] +
                    factors[t - 1] * gradient(int(t) - 1, p, std::int64_t(i));
      squares[i / std::size_t(columns)] += momentum[i] * momentum[i];
    }
    for (std::size_t i = 0; i < got.size(); ++i)
      value[i] -= 0.5 / double(t) * momentum[i] /
                  (std::sqrt(squares[i / std::size_t(columns)]) + 1.0);
  }
  expect_near(got, value, 1e-12);
}

TEST_F(MatrixRules, OfTheCallerAreFollowed) {
  for (const std::optional<double> clip : {std::optional<double>(), {3.0}}) {
    OptimizerOptions options =
        options_of(Rule(RowNormalized{}, Sgd{.learning_rate = 1.0}), {});
    options.clip_norm = clip;
    for_each_partition(
        model_of(DType::float64), options, [&](ShardedOptimizer& optimizer) {
          std::vector<double> factors;
          for (int step = 0; step < 3; ++step) {
            fill(optimizer, step);
            const double norm = optimizer.step().gradient_norm();
            factors.push_back(clip ? double(float(*clip / (norm + 1e-6)))
                                   : 1.0);
          }
          for (std::int64_t p = 0; p < std::ssize(shapes); ++p) {
            const Extents& shape = shapes[std::size_t(p)];
            const auto got = read_parameter(optimizer, {p});
            if (shape.size() == 2) {
              expect_row_normalized(got, shape, p, factors);
              continue;
            }
            for (std::int64_t i = 0; i < std::ssize(got); ++i) {
              double value = start(p, i);
              for (int step = 0; step < 3; ++step)
                value -= factors[std::size_t(step)] * gradient(step, p, i);
              ASSERT_NEAR(got[std::size_t(i)], value, 1e-12);
            }
          }
        });
  }
}

TEST_F(MatrixRules, WorkMemoryIsOfTheLargestMatrix) {
  for_each_partition(model_of(DType::float64), options_of(Muon{}, {}),
                     [&](ShardedOptimizer& optimizer) {
                       bool any = false;
                       for (std::int64_t p = 0; p < std::ssize(shapes); ++p)
                         any = any || (shapes[std::size_t(p)].size() == 2 &&
                                       !optimizer.segments({p}).empty());
                       const Memory memory = optimizer.memory();
                       // Two copies of 24 x 24 and two products.
                       const std::int64_t most = 4 * 24 * 24 * 8;
                       EXPECT_EQ(memory.work > 0, any);
                       EXPECT_LE(memory.work, most);
                       if (ranks == 1) {
                         EXPECT_EQ(memory.work, most);
                       }
                       EXPECT_EQ(memory.total(),
                                 memory.parameters + memory.gradients +
                                     memory.state() + memory.staging +
                                     memory.work);
                     });
}

TEST_F(MatrixRules, WhatIsNoMatrixHasAGroupOfItsOwn) {
  ParameterSet model;
  const auto matrix = model.add("matrix", {3, 4});
  const auto vector = model.add("vector", {5});
  ParameterOptions beside;
  beside.group = "default/beside";
  const auto embedding = model.add("embedding", {4, 3}, beside);
  for_each_partition(
      model, options_of(Rule(Muon{}, Sgd{.learning_rate = 0.5}), {}),
      [&](ShardedOptimizer& optimizer) {
        EXPECT_EQ(optimizer.group("default").rule(), "muon");
        Group group = optimizer.group("default/beside");
        EXPECT_EQ(group.rule(), "sgd");
        EXPECT_EQ(group.get("learning_rate"), 0.5);
        group.set("learning_rate", 2.0);
        train(optimizer, 0, 1);
        for (const ParameterId id : {vector, embedding}) {
          const auto got = read_parameter(optimizer, id);
          for (std::int64_t i = 0; i < std::ssize(got); ++i)
            EXPECT_NEAR(got[std::size_t(i)],
                        start(id.index, i) - 2.0 * gradient(0, id.index, i),
                        1e-6);
        }
        EXPECT_EQ(optimizer.update_count(matrix), 1);
        EXPECT_EQ(optimizer.update_count(vector), 1);
        EXPECT_NE(optimizer.describe().find(
                      "group \"default/beside\": sgd(learning_rate 2"),
                  std::string::npos)
            << optimizer.describe();
      });
}

TEST_F(MatrixRules, GroupBesideTakesTheRuleThatIsGivenByItsName) {
  ParameterSet model;
  model.add("matrix", {3, 4});
  ParameterOptions in_group;
  in_group.group = "head";
  model.add("vector", {5}, in_group);
  OptimizerOptions options = options_of(AdamW{}, {});
  options.groups["head"] = Rule(RowNormalized{}, Adam{});
  options.groups["head/beside"] = Lion{};
  for_each_partition(model, options, [&](ShardedOptimizer& optimizer) {
    EXPECT_EQ(optimizer.group("default").rule(), "adamw");
    EXPECT_EQ(optimizer.group("head").rule(), "row_normalized");
    EXPECT_EQ(optimizer.group("head/beside").rule(), "lion");
    EXPECT_THROW(optimizer.group("default/beside"), InvalidArgument);
  });
}

TEST_F(MatrixRules, LambMayStandBeside) {
  ParameterSet model;
  model.add("matrix", {20, 30});
  model.add("vector", {50});
  ParameterSet vectors;
  vectors.add("matrix", {1});
  vectors.add("vector", {50});
  for_each_partition(model, options_of(Rule(Muon{}, Lamb{}), {}),
                     [&](ShardedOptimizer& optimizer) {
                       OptimizerOptions options =
                           options_of(Lamb{}, Partition::elements);
                       ShardedOptimizer twin(world(), vectors, options);
                       write_start(twin);
                       train(optimizer, 0, 3);
                       train(twin, 0, 3);
                       expect_near(read_parameter(optimizer, {1}),
                                   read_parameter(twin, {1}), 1e-6);
                     });
}

struct Greedy : RowNormalized {
  static constexpr std::string_view name = "greedy";
  static constexpr Hyperparameter<Greedy> hyperparameters[] = {
      {"learning_rate", &Greedy::learning_rate}};
  static std::int64_t work_elements(std::int64_t, std::int64_t) { return -1; }
  Greedy prepared(std::int64_t) const { return *this; }
};

TEST_F(MatrixRules, WrongOnesAreRefused) {
  const auto refusal = [&](const ParameterSet& model,
                           const OptimizerOptions& options) {
    return message_of<InvalidArgument>(
        [&] { ShardedOptimizer(world(), model, options); });
  };
  const auto expect_says = [](const std::string& text,
                              std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(text.find(part), std::string::npos)
          << "'" << part << "' is not in: " << text;
  };
  ParameterSet one;
  one.add("w", {3, 4});
  if (ranks > 1)
    expect_says(refusal(one, options_of(Muon{}, Partition::elements)),
                {"muon", "\"default\"", "whole matrices", "elements",
                 "Partition::parameters"});

  for (const Partition partition : whole_partitions(ranks)) {
    OptimizerOptions options = options_of(Muon{}, partition);
    ParameterSet split;
    ParameterOptions kind;
    kind.model_parallel = ModelParallel::split;
    split.add("w", {3, 4}, kind);
    expect_says(refusal(split, options),
                {"\"w\" [3,4]", "muon", "split", "default/beside"});
    ParameterSet split_vector;
    split_vector.add("w", {3}, kind);
    ShardedOptimizer(world(), split_vector, options);

    // Only declared: before it is allocated.
    ParameterSet wide;
    wide.add("w", {0, std::int64_t(1) << 31});
    expect_says(refusal(wide, options), {"\"w\" [0,2147483648]", "BLAS"});

    options.groups["default/beside"] = RowNormalized{};
    expect_says(refusal(one, options),
                {"\"default/beside\"", "row_normalized", "muon", "AdamW"});
    expect_says(refusal(one, options_of(Greedy{}, partition)),
                {"greedy", "-1", "\"w\"", "work_elements"});
  }
}

TEST_F(MatrixRules, MustBeTheSameOnAllRanks) {
  if (ranks == 1) GTEST_SKIP() << "takes two ranks";
  const bool last = world()->rank() == ranks - 1;
  ParameterSet model;
  model.add("w", {3, 4});
  model.add("b", {3});
  for (const Partition partition : whole_partitions(ranks)) {
    const auto make = [&](double rate) {
      return ShardedOptimizer(
          world(), model,
          options_of(Rule(Muon{}, AdamW{.learning_rate = rate}), partition));
    };
    const auto text =
        message_of<InvalidArgument>([&] { make(last ? 0.25 : 0.75); });
    EXPECT_NE(text.find("learning_rate 0.25"), std::string::npos) << text;
    EXPECT_NE(text.find("learning_rate 0.75"), std::string::npos) << text;
    auto optimizer = make(0.5);
    optimizer.group("default/beside").set("learning_rate", last ? 0.25 : 0.75);
    EXPECT_THROW(optimizer.step(), InvalidArgument);
  }
}

#if KZERO_HAVE_HDF5

TEST_F(MatrixRules, CheckpointBringsEverythingBack) {
  for (const Rule& rule : {Rule(Muon{.learning_rate = 0.1}, Lion{}),
                           Rule(RowNormalized{}, AdamW{.amsgrad = true})})
    for (const DType dtype : {DType::float32, DType::bfloat16})
      for_each_partition(
          model_of(dtype), options_of(rule, {}),
          [&](ShardedOptimizer& optimizer) {
            const ScratchFolder folder(MPI_COMM_WORLD);
            train(optimizer, 0, 2);
            optimizer.group("default/beside").set("learning_rate", 0.125);
            save_checkpoint(optimizer, folder / "matrices.h5");
            const Snapshot saved = snapshot(optimizer, MPI_COMM_WORLD);
            const std::string array =
                rule.name() == "muon" ? "p0|momentum_buffer" : "p0|momentum";
            ASSERT_EQ(saved.count(array), 1u);
            EXPECT_NE(saved.at(array),
                      std::string(saved.at(array).size(), '\0'));
            train(optimizer, 2, 4);

            OptimizerOptions options = optimizer.options();
            options.plan.bucket_bytes = 4000;
            ShardedOptimizer loaded(world(), model_of(dtype), options);
            load_checkpoint(loaded, folder / "matrices.h5");
            EXPECT_TRUE(equal(snapshot(loaded, MPI_COMM_WORLD), saved));
            EXPECT_EQ(loaded.group("default/beside").get("learning_rate"),
                      0.125);
            train(loaded, 2, 4);
            EXPECT_TRUE(equal(snapshot(loaded, MPI_COMM_WORLD),
                              snapshot(optimizer, MPI_COMM_WORLD)));
          });
}

// From an AdamW run to Muon: what is no matrix goes on with its state.
TEST_F(MatrixRules, GoOnFromACheckpointOfTheRuleBeside) {
  ShardedOptimizer plain(world(), model_of(DType::float32),
                         options_of(AdamW{}, Partition::elements));
  const ScratchFolder folder(MPI_COMM_WORLD);
  write_start(plain);
  train(plain, 0, 2);
  save_checkpoint(plain, folder / "plain.h5");
  const Snapshot saved = snapshot(plain, MPI_COMM_WORLD);
  for_each_partition(
      model_of(DType::float32), options_of(Muon{}, {}),
      [&](ShardedOptimizer& optimizer) {
        load_checkpoint(optimizer, folder / "plain.h5",
                        {Match::partial, OtherRule::start_anew});
        const Snapshot got = snapshot(optimizer, MPI_COMM_WORLD);
        for (const char* name : {"p0|value", "p1|value", "p1|exp_avg",
                                 "p1|exp_avg_sq", "p8|exp_avg"})
          EXPECT_EQ(got.at(name), saved.at(name)) << name;
        EXPECT_EQ(optimizer.update_count({1}), 2);
        EXPECT_EQ(optimizer.update_count({0}), 0);
      });
}

// The names in a file say which rule the state is of.
TEST_F(MatrixRules, CheckpointOfAnotherRuleIsRefused) {
  ShardedOptimizer plain(world(), model_of(DType::float32),
                         options_of(AdamW{}, Partition::elements));
  const ScratchFolder folder(MPI_COMM_WORLD);
  save_checkpoint(plain, folder / "plain.h5");
  for_each_partition(
      model_of(DType::float32), options_of(Muon{}, {}),
      [&](ShardedOptimizer& optimizer) {
        const auto text = message_of<CheckpointError>(
            [&] { load_checkpoint(optimizer, folder / "plain.h5"); });
        for (const char* part : {"muon", "adamw", "\"default/beside\""})
          EXPECT_NE(text.find(part), std::string::npos) << text;
      });
}

TEST_F(MatrixRules, StateAsTextComesBack) {
  for_each_partition(
      model_of(DType::float32), options_of(Muon{}, {}),
      [&](ShardedOptimizer& optimizer) {
        train(optimizer, 0, 2);
        optimizer.group("default/beside").set("learning_rate", 0.125);
        const std::string text = state_json(optimizer);
        ShardedOptimizer loaded(world(), model_of(DType::float32),
                                optimizer.options());
        load_state_json(loaded, text);
        EXPECT_EQ(loaded.group("default/beside").get("learning_rate"), 0.125);
        EXPECT_EQ(loaded.update_count({0}), 2);
        EXPECT_EQ(loaded.update_count({1}), 2);
      });
}

#endif

}  // namespace
}  // namespace kzero::test
