// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// 64 Mi parameters: the peak memory that the operating system sees is what
// memory() reports, so a rank of P holds a P-th of the state.
#include <gtest/gtest.h>

#include <fstream>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

// Peak resident memory of this process in bytes.
std::int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  return -1;
}

TEST(PeakMemory, IsWhatIsReported) {
  const auto communicator = world();
  constexpr std::int64_t elements = std::int64_t{64} << 20;
  ParameterSet model;
  for (int i = 0; i < 16; ++i)
    model.add(detail::concat("w", i), {elements / 16});
  const std::int64_t before = peak_memory();
  ASSERT_GT(before, 0);
  ShardedOptimizer optimizer(communicator, model);
  optimizer.step();
  const std::int64_t grown = peak_memory() - before;

  const Memory memory = optimizer.memory();
  EXPECT_EQ(memory.state(), 8 * elements / communicator->size());
  RecordProperty("peak_growth_bytes", std::to_string(grown));
  RecordProperty("reported_bytes", std::to_string(memory.total()));
  constexpr double mebibyte = 1 << 20;
  EXPECT_NEAR(double(grown) / mebibyte, double(memory.total()) / mebibyte,
              0.02 * double(memory.total()) / mebibyte + 32.0);
}

}  // namespace
}  // namespace kzero::test
