// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Work is ordered on the instances that the caller gives: a gradient that a
// slow kernel writes on one of them, a parameter that is read on another. No
// call waits for the work of instances that it was not given.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optim/overlap_model.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t width = 5000;
constexpr std::int64_t layers = 4;

using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<int>>;

/// Two that need not wait for each other, where the Kokkos in use has such.
std::vector<ExecutionSpace> two_instances() {
#if KOKKOS_VERSION >= 40000
  const auto parts =
      Kokkos::Experimental::partition_space(ExecutionSpace(), 1, 1);
  return {parts[0], parts[1]};
#else
  return {ExecutionSpace(), ExecutionSpace()};
#endif
}

/// Adds up for a while before it writes 1.
void write_slowly(const ExecutionSpace& space,
                  const ParameterView<float*>& gradient, int laps) {
  Kokkos::parallel_for(
      "slow", Policy(space, 0, int(width)), KOKKOS_LAMBDA(int i) {
        float sum = 0.0f;
        for (int lap = 0; lap < laps; ++lap)
          sum += float((lap * 7919 + i) % 13);
        gradient(i) = sum < 0.0f ? 0.0f : 1.0f;
      });
}

class ExecutionOrder : public testing::TestWithParam<Mode> {
 protected:
  ShardedOptimizer make() {
    ParameterSet set;
    for (std::int64_t l = 0; l < layers; ++l)
      set.add(detail::concat("layers/", l), {width});
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = 1.0};
    options.plan.bucket_bytes = width * 4;
    return ShardedOptimizer(world(), set, GetParam().in(options), instances[0]);
  }

  const std::vector<ExecutionSpace> instances = two_instances();
};

TEST_P(ExecutionOrder, SlowKernelsAreWaitedForOnTheirInstance) {
  auto optimizer = make();
  const ExecutionSpace& compute = instances[1];
  const ExecutionSpace& reader = instances[0];
  for (int step = 1; step <= 3; ++step) {
    for (std::int64_t l = layers - 1; l >= 0; --l) {
      const auto gradient = optimizer.gradient<float*>({l}, compute);
      write_slowly(compute, gradient, 200);
      optimizer.mark_ready({l}, compute);
    }
    optimizer.step();
    for (std::int64_t l = 0; l < layers; ++l) {
      const auto value = optimizer.parameter<const float*>({l}, reader);
      int wrong = 0;
      Kokkos::parallel_reduce(
          "read", Policy(reader, 0, int(width)),
          KOKKOS_LAMBDA(int i, int& sum) {
            sum += value(i) != -float(step) ? 1 : 0;
          },
          wrong);
      EXPECT_EQ(wrong, 0) << "layer " << l << ", step " << step;
    }
  }
}

#if KOKKOS_VERSION >= 30500
std::vector<std::string>* fences = nullptr;

TEST_P(ExecutionOrder, NoCallFencesMoreThanItsInstances) {
  auto optimizer = make();
  std::vector<std::string> seen;
  fences = &seen;
  Kokkos::Tools::Experimental::set_begin_fence_callback(
      [](const char* name, std::uint32_t, std::uint64_t*) {
        fences->emplace_back(name);
      });
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_gradients(instances[1]);
    for (std::int64_t l = layers - 1; l >= 0; --l)
      optimizer.mark_ready({l}, instances[1]);
    optimizer.step();
    for (std::int64_t l = 0; l < layers; ++l)
      optimizer.parameter<const float*>({l}, instances[1]);
    optimizer.wait_parameters(instances[1]);
  }
  Kokkos::Tools::Experimental::set_begin_fence_callback(nullptr);
  EXPECT_FALSE(seen.empty());
  // A fence of everything has another name.
  for (const std::string& name : seen)
    EXPECT_EQ(name.rfind("kzero::", 0), 0u) << name;
}
#endif

INSTANTIATE_TEST_SUITE_P(Modes, ExecutionOrder, testing::ValuesIn(all_modes()));

}  // namespace
}  // namespace kzero::test
