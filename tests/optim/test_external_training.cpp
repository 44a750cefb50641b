// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Training of parameters in the caller's own views, of any layout: the bits of
// the same model in buckets of the optimizer's own.
#include <gtest/gtest.h>

#include <functional>

#include "optim/overlap_model.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

using Space = ExecutionSpace;
using Memory = typename Space::memory_space;

/// A matrix of the caller's and what belongs to it.
struct Own {
  ExternalArray value;
  ExternalArray gradient;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

template <class View>
ExternalArray array_of(const View& view) {
  return detail::ExternalOf<View>::make(view);
}

template <class T, class G, class Layout>
Own whole(std::int64_t rows, std::int64_t columns) {
  const auto r = std::size_t(rows), c = std::size_t(columns);
  return {
      array_of(Kokkos::View<T**, Layout, Memory>("value", r, c)),
      array_of(Kokkos::View<G**, Kokkos::LayoutRight, Memory>("slope", r, c)),
      rows, columns};
}

template <class T, class G>
Own contiguous(std::int64_t rows, std::int64_t columns) {
  return whole<T, G, Kokkos::LayoutRight>(rows, columns);
}

template <class T, class G>
Own transposed(std::int64_t rows, std::int64_t columns) {
  return whole<T, G, Kokkos::LayoutLeft>(rows, columns);
}

/// Every third column of rows that have gaps.
template <class T, class G>
Own strided(std::int64_t rows, std::int64_t columns) {
  const auto r = std::size_t(rows), c = std::size_t(columns);
  const auto all = Kokkos::ALL();
  Kokkos::View<T***, Kokkos::LayoutRight, Memory> value("value", r, c, 3);
  Kokkos::View<G***, Kokkos::LayoutLeft, Memory> slope("slope", 2, r, c);
  return {array_of(Kokkos::subview(value, all, all, 1)),
          array_of(Kokkos::subview(slope, 1, all, all)), rows, columns};
}

/// A part of larger ones, and raw memory.
template <class T, class G>
Own offset(std::int64_t rows, std::int64_t columns) {
  const auto r = std::size_t(rows), c = std::size_t(columns);
  Kokkos::View<T**, Kokkos::LayoutRight, Memory> value("value", r + 3, c + 5);
  auto slope = std::make_shared<std::vector<G>>(r * c + 7);
  return {array_of(Kokkos::subview(
              value, std::pair<std::size_t, std::size_t>(2, r + 2),
              std::pair<std::size_t, std::size_t>(1, c + 1))),
          {slope->data() + 7, dtype_of<G>, {rows, columns}, {}, slope},
          rows,
          columns};
}

template <class T, class G>
std::vector<Own> layouts() {
  return {contiguous<T, G>(13, 11), transposed<T, G>(17, 9),
          strided<T, G>(5, 40),     offset<T, G>(7, 30),
          transposed<T, G>(0, 4),   strided<T, G>(1, 1),
          transposed<T, G>(70, 60)};
}

/// Where element i in C order lies, in elements.
std::int64_t place(const ExternalArray& array, std::int64_t i) {
  if (array.strides.empty()) return i;
  const std::int64_t columns = array.extents[1];
  return i / columns * array.strides[0] + i % columns * array.strides[1];
}

double read(const ExternalArray& array, std::int64_t i) {
  double value = 0.0;
  visit_dtype(array.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    value = double(static_cast<const T*>(array.data)[place(array, i)]);
  });
  return value;
}

void write(const ExternalArray& array, std::int64_t i, double value) {
  visit_dtype(array.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    static_cast<T*>(array.data)[place(array, i)] = T(
        static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(value));
  });
}

double start(std::int64_t i) { return 0.5 + double(i % 9) / 16.0; }

double slope(double value, std::int64_t i, int rank, int step) {
  return 0.25 * value + double((i + step) % 7) - 2.0 + 0.5 * rank;
}

OptimizerOptions options_of(bool clip, const Partitioning& partition) {
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.05, .weight_decay = 0.1};
  options.plan.bucket_bytes = 3000;
  if (clip) options.clip_norm = 10.0;
  partition.set(options.plan);
  return options;
}

template <class T, class G>
class Twins {
 public:
  Twins(const std::shared_ptr<Communicator>& communicator, const Mode& mode,
        bool clip, const Partitioning& partition = {})
      : own_(layouts<T, G>()), rank_(communicator->rank()) {
    ParameterSet theirs, ours;
    for (std::size_t k = 0; k < own_.size(); ++k) {
      ParameterOptions options = typed(dtype_of<T>);
      options.chunk = k < 3 ? 0 : 1;
      theirs.add(detail::concat("w", k), own_[k].value, own_[k].gradient,
                 options);
      options.gradient_dtype = dtype_of<G>;
      ours.add(detail::concat("w", k), {own_[k].rows, own_[k].columns},
               options);
      for (std::int64_t i = 0; i < own_[k].value.size(); ++i)
        write(own_[k].value, i, start(i));
    }
    external = std::make_unique<ShardedOptimizer>(
        communicator, theirs, mode.in(options_of(clip, partition)));
    plain = std::make_unique<ShardedOptimizer>(communicator, ours,
                                               options_of(clip, partition));
    plain->write_parameters(0, [&](ParameterWriter& writer) {
      for (std::size_t k = 0; k < own_.size(); ++k)
        writer.visit({std::int64_t(k)},
                     [](const auto& view) { fill_view(view, start); });
    });
  }

  void step(std::mt19937& random, int step) {
    std::vector<std::size_t> order(own_.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t k : order) {
      const ParameterId id{std::int64_t(k)};
      external->wait_parameter(id);
      const auto values = read_parameter(*plain, id);
      std::vector<double> slopes(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(read(own_[k].value, std::int64_t(i)), values[i])
            << "parameter " << k << ", element " << i << ", step " << step;
        slopes[i] = slope(values[i], std::int64_t(i), rank_, step);
        write(own_[k].gradient, std::int64_t(i), slopes[i]);
      }
      fill_gradient(*plain, id, [&](auto i) { return slopes[std::size_t(i)]; });
    }
    std::shuffle(order.begin(), order.end(), random);
    // Some steps mark nothing, or not everything.
    if (step % 4 != 3)
      for (const std::size_t k : order) {
        if (step % 4 == 2 && k == 1) continue;
        external->mark_ready({std::int64_t(k)});
        plain->mark_ready({std::int64_t(k)});
      }
    const StepReport mine = external->step(), other = plain->step();
    EXPECT_EQ(mine.gradient_norm(), other.gradient_norm());
    EXPECT_EQ(mine.zero_count(), other.zero_count());
  }

  std::unique_ptr<ShardedOptimizer> external;
  std::unique_ptr<ShardedOptimizer> plain;

 private:
  std::vector<Own> own_;
  int rank_;
};

template <class Types>
class ExternalTraining : public testing::Test {};

template <class T, class G>
struct Pair {
  using Value = T;
  using Slope = G;
};
using Pairs = testing::Types<Pair<float, float>, Pair<double, double>,
                             Pair<bfloat16, float>, Pair<bfloat16, bfloat16>,
                             Pair<float16, float>, Pair<float, bfloat16>>;
TYPED_TEST_SUITE(ExternalTraining, Pairs);

TYPED_TEST(ExternalTraining, HasTheBitsOfBuckets) {
  const auto communicator = world();
  for (int number = 0; const Mode& mode : all_modes()) {
    // All of them with clipping, and all without.
    const Partitioning partition = some_partition(number++);
    SCOPED_TRACE(name_of(mode) + ", " + name_of(partition));
    Twins<typename TypeParam::Value, typename TypeParam::Slope> twins(
        communicator, mode, mode.schedule == Schedule::at_step, partition);
    std::mt19937 random(unsigned(communicator->rank()));
    for (int step = 0; step < 8; ++step) twins.step(random, step);
    const auto memory = twins.external->memory();
    EXPECT_EQ(memory.parameters, 0);
    if (this->HasFatalFailure()) return;
  }
}

// Of empty parameters alone there is nothing to gather.
TYPED_TEST(ExternalTraining, MayBeEmpty) {
  using T = typename TypeParam::Value;
  using G = typename TypeParam::Slope;
  for (int number = 0; const Mode& mode : all_modes()) {
    const Own own = transposed<T, G>(0, 3);
    ParameterSet set;
    const ParameterId id =
        set.add("w", own.value, own.gradient, typed(dtype_of<T>));
    ShardedOptimizer optimizer(
        world(), set, mode.in(options_of(false, some_partition(number++))));
    for (int step = 0; step < 2; ++step) {
      optimizer.mark_ready(id);
      EXPECT_TRUE(optimizer.step().updated());
      optimizer.wait_parameter(id);
    }
    EXPECT_EQ(optimizer.update_count(id), 2);
  }
}

// Main parameters from what a step has left under way.
TYPED_TEST(ExternalTraining, ReloadsWhatTheLastStepGives) {
  for (int number = 0; const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    Twins<typename TypeParam::Value, typename TypeParam::Slope> twins(
        world(), mode, false, some_partition(number++));
    std::mt19937 random(7);
    for (int step = 0; step < 4; ++step) {
      twins.step(random, step);
      twins.external->reload_main_from_parameters();
      twins.plain->reload_main_from_parameters();
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(ExternalTraining, HasNoParameterBucket) {
  Twins<typename TypeParam::Value, typename TypeParam::Slope> twins(
      world(), Mode(), false);
  const auto memory = twins.external->memory();
  EXPECT_EQ(memory.parameters, 0);
  EXPECT_EQ(memory.gradients, twins.plain->memory().gradients);
  EXPECT_GT(memory.main, 0);
}

}  // namespace
}  // namespace kzero::test
