// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// step() allocates nothing after the first call, and communicates by the
// bucket, not by the parameter.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "optim/overlap_model.hpp"
#include "storage/kokkos_support.hpp"
#include "support/allocation_counter.hpp"
#include "support/counting_communicator.hpp"
#include "support/optimizer_support.hpp"
#include "support/partitions.hpp"
#include "support/whole_partitions.hpp"

namespace kzero::test {
namespace {

std::atomic<std::int64_t> launches = 0;

// What Kokkos itself allocates in one launch and the fence behind it: some back
// ends and versions do.
std::int64_t allocations_of_a_launch() {
  const ExecutionSpace space;
  const auto launch = [&] {
    detail::for_each_index("x", space, 0, 8, [](std::int64_t) {});
  };
  launch();
  return allocations_of(launch);
}

enum class Kind { plain, clip, everything };

class Allocation
    : public testing::TestWithParam<std::tuple<Kind, Mode, Partitioning>> {};

TEST_P(Allocation, StepAllocatesNothingAfterTheFirst) {
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(
      [](const char*, std::uint32_t, std::uint64_t*) { ++launches; });
  const std::int64_t a_launch = allocations_of_a_launch();
  const Kind kind_of_model = std::get<0>(GetParam());
  const Mode mode = std::get<1>(GetParam());
  const bool everything = kind_of_model == Kind::everything;
  ParameterSet model;
  for (int i = 0; i < 20; ++i) {
    ParameterOptions kind =
        typed(i % 2 == 0 ? DType::float32 : DType::bfloat16);
    if (everything && i % 3 == 0) kind.unmarked = Unmarked::keep;
    if (everything && i % 5 == 0) kind.group = "lamb";
    model.add(detail::concat("p", i), {1000 + i}, kind);
  }
  OptimizerOptions options;
  options.plan.bucket_bytes = 5000;
  std::get<2>(GetParam()).set(options.plan);
  if (kind_of_model != Kind::plain) options.clip_norm = 1.0;
  if (everything) {
    options.groups["lamb"] = Lamb();
    options.scaler = Scaler::dynamic();
  }
  ShardedOptimizer optimizer(world(), model, mode.in(options));
  // Other parameters are kept at each step, so that their counts part.
  const auto mark = [&](int step, const ExecutionSpace& on) {
    for (std::int64_t p = 0; p < model.size(); ++p)
      if (!everything || p % 4 != step % 4) optimizer.mark_ready({p}, on);
  };
  // Without a mark everything goes out at once: the most there can be.
  optimizer.step();
  for (int step = 0; step < 8; ++step) {
    mark(step, ExecutionSpace());
    optimizer.step();
  }

  // Given, because Kokkos can allocate when an instance is made.
  const ExecutionSpace space;
  launches = 0;
  const std::int64_t allocations = allocations_of([&] {
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_gradients(space);
      mark(step, space);
      optimizer.step();
      optimizer.parameter<float*>({0}, space);
    }
  });
  EXPECT_GT(launches, 0);
  EXPECT_EQ(allocations - a_launch * launches, 0);
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Plain, Allocation,
                         testing::Combine(testing::Values(Kind::plain),
                                          testing::ValuesIn(all_modes()),
                                          testing::ValuesIn(all_partitions())));
INSTANTIATE_TEST_SUITE_P(
    Kinds, Allocation,
    testing::Combine(testing::Values(Kind::clip, Kind::everything),
                     testing::ValuesIn(all_modes(Decision::needed)),
                     testing::ValuesIn(all_partitions())));

// Muon, and a rule of one's own that takes the clipped gradient.
struct MatrixDescent {
  static constexpr std::string_view name = "matrix_descent";
  static constexpr std::array<std::string_view, 0> state = {};
  double learning_rate = 1e-3;
  static constexpr Hyperparameter<MatrixDescent> hyperparameters[] = {
      {"learning_rate", &MatrixDescent::learning_rate}};
  static std::int64_t work_elements(std::int64_t rows, std::int64_t columns) {
    return rows + columns;
  }
  template <class T>
  void operator()(const MatrixUpdate<T>& matrix) const {
    for (std::size_t i = 0; i < matrix.parameter.size(); ++i)
      matrix.parameter[i] -= T(learning_rate) * matrix.gradient[i];
  }
};

TEST(MatrixAllocation, StepAllocatesNothingAfterTheFirst) {
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(
      [](const char*, std::uint32_t, std::uint64_t*) { ++launches; });
  const std::int64_t a_launch = allocations_of_a_launch();
  for (const Partition partition : whole_partitions(world()->size())) {
    ParameterSet model;
    for (int i = 0; i < 12; ++i) {
      ParameterOptions kind =
          typed(i % 2 == 0 ? DType::float32 : DType::bfloat16);
      if (i % 3 == 0) kind.group = "own";
      model.add(detail::concat("p", i),
                i % 4 == 0 ? std::vector<std::int64_t>{100 + i}
                           : std::vector<std::int64_t>{20 + i, 31 - i},
                kind);
    }
    OptimizerOptions options;
    options.rule = Muon{};
    options.groups["own"] = MatrixDescent{};
    options.plan.partition = partition;
    options.plan.bucket_bytes = 5000;
    options.clip_norm = 1e-3;
    ShardedOptimizer optimizer(world(), model, options);
    const auto fill = [&] {
      for (std::int64_t p = 0; p < model.size(); ++p)
        fill_gradient(optimizer, {p}, [](auto) { return 1.0; });
    };
    for (int step = 0; step < 3; ++step) {
      fill();
      optimizer.step();
    }
    fill();
    launches = 0;
    const std::int64_t allocations = allocations_of([&] { optimizer.step(); });
    EXPECT_GT(launches, 0);
    EXPECT_EQ(allocations - a_launch * launches, 0);
  }
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
}

TEST(Collectives, DependOnBucketsOnly) {
  for (int parameters : {1, 10, 1000}) {
    ParameterSet model;
    for (int i = 0; i < parameters; ++i)
      model.add(detail::concat("p", i), {64000 / parameters});
    OptimizerOptions options;
    const auto communicator = std::make_shared<CountingCommunicator>(world());
    ShardedOptimizer optimizer(communicator, model, options);
    EXPECT_LE(communicator->collectives, 2) << "at construction";
    ASSERT_EQ(optimizer.plan().buckets().size(), 1u);
    communicator->collectives = 0;
    optimizer.step();
    EXPECT_EQ(communicator->collectives, 4)
        << "hyperparameters, reduce, totals, gather";
  }
}

}  // namespace
}  // namespace kzero::test
