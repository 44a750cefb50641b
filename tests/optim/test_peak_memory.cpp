// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// 64 Mi parameters: the peak memory that the operating system sees is what
// memory() reports, so a rank of P holds a P-th of the state.
#include <gtest/gtest.h>

#include <fstream>

#include "optim/overlap_model.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t elements = std::int64_t{64} << 20;
constexpr int parameters = 16;
constexpr double mebibyte = 1 << 20;

// Peak resident memory of this process in bytes, since it was forgotten.
std::int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  return -1;
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

class PeakMemory : public testing::Test {
 protected:
  /// What an optimizer takes at most, in bytes.
  std::int64_t growth(const ParameterSet& model, const OptimizerOptions& with) {
    forget_peak();
    const std::int64_t before = peak_memory();
    // A communicator keeps what it has grown to. Not one that shares memory:
    // the peak counts what peers own as well.
    ShardedOptimizer optimizer(world(Backend::mpi), model, with);
    for (int step = 0; step < 2; ++step) {
      for (int i = parameters - 1; i >= 0; --i) optimizer.mark_ready({i});
      optimizer.step();
    }
    optimizer.wait_parameters();
    memory = optimizer.memory();
    EXPECT_GT(before, 0);
    return peak_memory() - before;
  }

  void expect_about(std::int64_t grown, std::int64_t bytes) {
    RecordProperty("peak_growth_bytes", std::to_string(grown));
    RecordProperty("expected_bytes", std::to_string(bytes));
    EXPECT_NEAR(double(grown) / mebibyte, double(bytes) / mebibyte,
                0.02 * double(bytes) / mebibyte + 32.0);
    EXPECT_EQ(memory.total(), bytes);
  }

  const std::int64_t ranks = world()->size();
  Memory memory;
};

TEST_F(PeakMemory, OfFloat32IsWhatIsReported) {
  ParameterSet model;
  for (int i = 0; i < parameters; ++i)
    model.add(detail::concat("w", i), {elements / parameters});
  const std::int64_t grown = growth(model, {});
  EXPECT_EQ(memory.state(), 8 * memory.parameters / 4 / ranks);
  expect_about(grown, memory.total());
}

// 6 + 12/P bytes a padded element, and two staging pieces of the bucket cap.
TEST_F(PeakMemory, OfBfloat16IsTheFormula) {
  ParameterSet model;
  for (int i = 0; i < parameters; ++i)
    model.add(detail::concat("w", i), {elements / parameters},
              typed(DType::bfloat16));
  OptimizerOptions options;
  for (const Mode& mode : all_modes()) {
    SCOPED_TRACE(name_of(mode));
    const std::int64_t grown = growth(model, mode.in(options));
    const std::int64_t padded = memory.parameters / 2;
    EXPECT_LT(padded - elements, parameters * 64 * ranks);
    const std::int64_t formula = 6 * padded + 12 * padded / ranks;
    EXPECT_LE(memory.staging, 2 * options.plan.bucket_bytes);
    expect_about(grown, formula + memory.staging);
    if (HasFailure()) return;
  }
}

// No parameter bucket; two more pieces to gather through.
TEST_F(PeakMemory, OfTheCallersMemoryHasNoParameterBucket) {
  using Values = Kokkos::View<bfloat16*, ExecutionSpace>;
  using Slopes = Kokkos::View<float*, ExecutionSpace>;
  ParameterSet model;
  for (int i = 0; i < parameters; ++i)
    model.add(detail::concat("w", i),
              Values("values", std::size_t(elements / parameters)),
              Slopes("slopes", std::size_t(elements / parameters)));
  const Mode mode{Schedule::after_backward, GatherMode::overlapped,
                  Progress::calls};
  OptimizerOptions options;
  const std::int64_t grown = growth(model, mode.in(options));
  const std::int64_t padded = memory.gradients / 4;
  EXPECT_EQ(memory.parameters, 0);
  EXPECT_LE(memory.staging, 4 * options.plan.bucket_bytes);
  expect_about(grown, 4 * padded + 12 * padded / ranks + memory.staging);
}

}  // namespace
}  // namespace kzero::test
