// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case 21: what a save and a load take beside the optimizer, by the operating
// system's figures.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <kzero/checkpoint.hpp>
#include <string>

#include "io/scratch_folder.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// A line "name: number kB" of this process' status, in bytes.
std::int64_t status(const std::string& name) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(name + ":", 0) == 0)
      return std::stoll(line.substr(name.size() + 1)) * 1024;
  return -1;
}

/// Bytes of this process' own memory that f takes at its peak. Pages of peers
/// that a rank looks at count as well.
template <class F>
std::int64_t peak_of(F&& f) {
  std::ofstream("/proc/self/clear_refs") << 5;
  const std::int64_t before = status("VmHWM");
  f();
  return status("VmHWM") - before;
}

class CheckpointMemory : public testing::Test {
 protected:
  /// 4 parameters of 4 MiB elements, with two moments: 192 MiB of state.
  CheckpointMemory() : optimizer(make()) {
    for (int step = 0; step < 2; ++step) optimizer.step();
    for (std::int64_t i = 0; i < 4; ++i) touch(i);
  }

  static ShardedOptimizer make() {
    ParameterSet model;
    for (int i = 0; i < 4; ++i)
      model.add(detail::concat("p", i), {4 * mebibyte});
    OptimizerOptions options;
    options.plan.bucket_bytes = 16 * mebibyte;
    return {world(), model, options};
  }

  // All pages of it.
  void touch(std::int64_t i) {
    const auto view = optimizer.parameter<const float*>({i});
    double sum = 0;
    for (std::size_t k = 0; k < view.extent(0); k += 256) sum += view(k);
    EXPECT_EQ(sum, sum);
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  ShardedOptimizer optimizer;
};

TEST_F(CheckpointMemory, OfDirectSavesAndLoadsIsSmall) {
  const auto path = folder / "c.h5";
  save_checkpoint(optimizer, path);  // what MPI and HDF5 take once
  EXPECT_LE(peak_of([&] { save_checkpoint(optimizer, path); }), 4 * mebibyte);
  load_checkpoint(optimizer, path);
  EXPECT_LE(peak_of([&] { load_checkpoint(optimizer, path); }), 4 * mebibyte);
}

TEST_F(CheckpointMemory, OfGatherIsOneArrayOfABucketOnTheRoot) {
  const auto path = folder / "c.h5";
  const bool root = optimizer.communicator()->rank() == 0;
  const std::int64_t limit = (root ? 16 + 8 : 8) * mebibyte;
  const CheckpointOptions options{.engine = Engine::gather};
  save_checkpoint(optimizer, path, options);
  EXPECT_LE(peak_of([&] { save_checkpoint(optimizer, path, options); }), limit);
}

}  // namespace
}  // namespace kzero::test
