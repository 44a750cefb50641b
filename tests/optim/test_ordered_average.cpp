// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The averaged gradient against the ordered sum of numerics.md written out
// here, bit by bit; and parameters, whatever the bucket size and the order of
// marking.
#include <gtest/gtest.h>

#include <random>

#include "support/optimizer_support.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

constexpr DType types[] = {DType::float32, DType::bfloat16, DType::float16,
                           DType::float64};

double gradient_of(int rank, std::int64_t parameter, std::int64_t i) {
  std::minstd_rand mixed(unsigned(1 + rank * 7919 + parameter * 104729 + i));
  mixed.discard(3);
  return (double(mixed() % 20001) - 10000.0) / 3000.0;
}

// S(a, b) = S(a, a + k) + S(a + k, b), k the largest power of two below b - a.
template <class Sum, class Value>
Sum ordered_sum(int a, int b, const Value& value) {
  if (b - a == 1) return Sum(value(a));
  int k = 1;
  while (2 * k < b - a) k *= 2;
  return ordered_sum<Sum>(a, a + k, value) + ordered_sum<Sum>(a + k, b, value);
}

// What the gradient's type makes of a number.
double stored(DType dtype, double x) {
  switch (dtype) {
    case DType::float16:
      return double(float(float16(float(x))));
    case DType::bfloat16:
      return double(float(bfloat16(float(x))));
    case DType::float32:
      return double(float(x));
    case DType::float64:
      return x;
  }
  return x;
}

struct Model {
  ParameterSet set;
  std::vector<ParameterId> ids;
  Model() {
    int index = 0;
    for (const DType value : types) {
      for (const DType gradient : types) {
        ParameterOptions options = typed(value);
        options.gradient_dtype = gradient;
        const std::int64_t size = 1 + 137 * (index % 5) + 2100 * (index % 2);
        ids.push_back(set.add(detail::concat("p", index++), {size}, options));
      }
    }
  }
};

template <class Sum, class Main>
void expect_average(ShardedOptimizer& optimizer, ParameterId id, int ranks,
                    double scale) {
  const DType dtype = optimizer.parameters()[id].gradient_dtype;
  const auto segments = optimizer.segments(id);
  const auto views = optimizer.averaged_gradient<Main>(id);
  ASSERT_EQ(views.size(), segments.size());
  for (std::size_t s = 0; s < views.size(); ++s) {
    ASSERT_EQ(std::int64_t(views[s].extent(0)),
              segments[s].in_parameter.size());
    for (std::size_t i = 0; i < views[s].extent(0); ++i) {
      const auto element = segments[s].in_parameter.begin + std::int64_t(i);
      const Sum sum = ordered_sum<Sum>(0, ranks, [&](int rank) {
        return stored(dtype, gradient_of(rank, id.index, element));
      });
      ASSERT_EQ(views[s](i), Main(sum * Sum(1.0 / (ranks * scale))))
          << optimizer.parameters()[id].name << ' ' << element;
    }
  }
}

TEST(OrderedAverage, HasTheBitsOfTheTreeForEveryPairOfTypes) {
  const auto communicator = world();
  const Model model;
  for (const double scale : {1.0, 3.0}) {
    for (int run = 0; run < 8; ++run) {
      const std::int64_t bytes = run < 4 ? 1000 : 1 << 20;
      const Partitioning partition = some_partition(run);
      SCOPED_TRACE(name_of(partition));
      OptimizerOptions options;
      partition.set(options.plan);
      options.scaler = Scaler::constant(scale);
      options.plan.bucket_bytes = bytes;
      ShardedOptimizer optimizer(communicator, model.set, options);
      for (const ParameterId id : model.ids)
        fill_gradient(optimizer, id, [&](std::int64_t i) {
          return gradient_of(communicator->rank(), id.index, i);
        });
      optimizer.step();
      for (const ParameterId id : model.ids) {
        const ParameterInfo& info = model.set[id];
        const bool wide_sum = info.gradient_dtype == DType::float64;
        const int ranks = communicator->size();
        if (info.dtype == DType::float64 && wide_sum)
          expect_average<double, double>(optimizer, id, ranks, scale);
        else if (info.dtype == DType::float64)
          expect_average<float, double>(optimizer, id, ranks, scale);
        else if (wide_sum)
          expect_average<double, float>(optimizer, id, ranks, scale);
        else
          expect_average<float, float>(optimizer, id, ranks, scale);
      }
    }
  }
}

// Case 6: bfloat16 contributions are not summed in bfloat16.
TEST(OrderedAverage, SixteenBitsAreSummedInFloat32) {
  const auto communicator = world();
  ParameterSet set;
  ParameterOptions options = typed(DType::bfloat16);
  options.gradient_dtype = DType::bfloat16;
  const auto id = set.add("w", {640}, options);
  ShardedOptimizer optimizer(communicator, set);
  const bool first = communicator->rank() == 0;
  fill_gradient(optimizer, id, [&](auto) { return first ? 256.0 : 1.0; });
  optimizer.step();
  const int ranks = communicator->size();
  for (const auto& view : optimizer.averaged_gradient<float>(id))
    for (std::size_t i = 0; i < view.extent(0); ++i)
      ASSERT_EQ(view(i), float(256 + ranks - 1) * (1.0f / float(ranks)));
}

std::vector<double> trained(const Rule& rule, std::int64_t bucket_bytes,
                            unsigned seed, const Partitioning& partition = {}) {
  const auto communicator = world();
  const Model model;
  OptimizerOptions options;
  options.rule = rule;
  options.plan.bucket_bytes = bucket_bytes;
  partition.set(options.plan);
  ShardedOptimizer optimizer(communicator, model.set, options);
  for (const ParameterId id : model.ids)
    write_parameter(optimizer, id,
                    [&](auto i) { return gradient_of(9, id.index, i) / 4; });
  std::mt19937 random(seed + unsigned(communicator->rank()));
  for (int step = 0; step < 3; ++step) {
    auto order = model.ids;
    std::shuffle(order.begin(), order.end(), random);
    for (const ParameterId id : order) {
      fill_gradient(optimizer, id, [&](std::int64_t i) {
        return gradient_of(communicator->rank() + 10 * step, id.index, i);
      });
      optimizer.mark_ready(id);
    }
    optimizer.step();
  }
  return read_all(optimizer);
}

// Cases 4 and 15.
TEST(OrderedAverage, EveryElementWiseRuleHasTheSameBitsForAnyBucketsAndOrder) {
  const Rule rules[] = {
      Adam{.weight_decay = 0.1, .amsgrad = true},
      AdamW{.maximize = true},
      Sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true},
      Adagrad{.learning_rate_decay = 0.1, .initial_accumulator_value = 0.1},
      RmsProp{.momentum = 0.9, .centered = true},
      Lion{.learning_rate = 0.01, .weight_decay = 0.1}};
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.name());
    const auto expected = trained(rule, 1 << 20, 1);
    int run = 0;
    for (unsigned seed = 2; seed < 4; ++seed)
      for (const std::int64_t bytes : {1, 5000}) {
        const Partitioning partition = some_partition(run++);
        ASSERT_EQ(trained(rule, bytes, seed, partition), expected)
            << bytes << ", " << name_of(partition);
      }
  }
}

}  // namespace
}  // namespace kzero::test
