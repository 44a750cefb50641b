// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The same bits whatever the compiler, the instruction set, the threads and
// the size and owners of the buckets: hashes written down here, from the first
// build.
#include <gtest/gtest.h>

#include <map>

#include "core/hash.hpp"
#include "kernels/kernels.hpp"
#include "support/optimizer_support.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

// Integers and divisions by powers of two only: exact everywhere.
double pattern(std::int64_t i, std::int64_t seed) {
  const std::uint64_t mixed =
      (std::uint64_t(i) * 2654435761u + std::uint64_t(seed) * 40503u) >> 7;
  return double(std::int64_t(mixed % 2001) - 1000) / 1024.0;
}

std::uint64_t run(std::int64_t bucket_bytes, std::optional<double> clip,
                  const Partitioning& partition = {}) {
  const auto communicator = world();
  ParameterSet model;
  ParameterOptions options_of[] = {
      typed(DType::float32), typed(DType::bfloat16), typed(DType::float16),
      typed(DType::float64)};
  int index = 0;
  for (std::int64_t size : {777, 64, 1, 3001, 130, 5000, 63, 999}) {
    ParameterOptions& options = options_of[index++ % 4];
    options.group = index % 3 == 0 ? "momentum" : "default";
    model.add(detail::concat("p", index), {size}, options);
  }
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.01, .amsgrad = true};
  options.groups["momentum"] =
      Sgd{.learning_rate = 0.05, .momentum = 0.9, .nesterov = true};
  options.clip_norm = clip;
  options.plan.bucket_bytes = bucket_bytes;
  partition.set(options.plan);
  ShardedOptimizer optimizer(communicator, model, options);
  for (std::int64_t p = 0; p < model.size(); ++p)
    write_parameter(optimizer, {p}, [&](auto i) { return pattern(i, p); });
  for (int step = 0; step < 5; ++step) {
    for (std::int64_t p = 0; p < model.size(); ++p)
      fill_gradient(optimizer, {p}, [&](auto i) {
        return pattern(i, 100 * step + p + 1000 * communicator->rank());
      });
    optimizer.step();
  }
  const auto values = read_all(optimizer);
  return detail::hash(values.data(), values.size() * sizeof(double));
}

const std::map<int, std::uint64_t> golden = {{1, 0x2fa9163bb2b14f6eu},
                                             {2, 0xc3261341ef6b42d1u},
                                             {3, 0xc16c417b7e7b38b7u},
                                             {4, 0xcfe175bd647f83eau}};

TEST(Bits, AreThoseWrittenDown) {
  for (std::string_view set : detail::instruction_sets()) {
    SCOPED_TRACE(set);
    detail::use_instruction_set(set);
    for (std::int64_t bytes : {100, 4000, 25 << 20})
      for (const Partitioning& partition : all_partitions())
        EXPECT_EQ(run(bytes, std::nullopt, partition),
                  golden.at(world()->size()))
            << bytes << ", " << name_of(partition);
  }
}

// A norm that is never reached: sum and update are two passes then.
TEST(Bits, OfTwoPassesAreThoseOfOne) {
  for (std::string_view set : detail::instruction_sets()) {
    SCOPED_TRACE(set);
    detail::use_instruction_set(set);
    for (const Partitioning& partition : all_partitions())
      EXPECT_EQ(run(4000, 1e30, partition), golden.at(world()->size()))
          << name_of(partition);
  }
}

const std::map<int, std::uint64_t> golden_clipped = {{1, 0xe9b712ccbc24c366u},
                                                     {2, 0x2ad914c3eeb41065u},
                                                     {3, 0x42bd25c223d1d76du},
                                                     {4, 0x5714052361d2f928u}};

// The norm adds across tiles, so these hold for one plan.
TEST(Bits, AreThoseWrittenDownWithClipping) {
  for (std::string_view set : detail::instruction_sets()) {
    SCOPED_TRACE(set);
    detail::use_instruction_set(set);
    EXPECT_EQ(run(4000, 0.25), golden_clipped.at(world()->size()));
  }
}

}  // namespace
}  // namespace kzero::test
