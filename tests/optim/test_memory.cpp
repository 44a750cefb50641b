// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What an optimizer reports is what its plan has said, to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "layout/exchange_pieces.hpp"
#include "optim/overlap_model.hpp"
#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

void expect_equal(const Memory& got, const Memory& expected) {
  EXPECT_EQ(got.parameters, expected.parameters);
  EXPECT_EQ(got.gradients, expected.gradients);
  EXPECT_EQ(got.averaged, expected.averaged);
  EXPECT_EQ(got.main, expected.main);
  EXPECT_EQ(got.moments, expected.moments);
  EXPECT_EQ(got.staging, expected.staging);
  EXPECT_EQ(got.total(), expected.total());
}

/// What the plan says, of rules by group.
Memory planned(const ShardedOptimizer& optimizer,
               const std::map<std::string, std::size_t>& arrays) {
  const Plan& plan = optimizer.plan();
  std::vector<std::size_t> of_buffers;
  for (const Buffer& buffer : plan.buffers()) {
    std::size_t most = 0;
    for (const ParameterId id : buffer.parameters)
      most = std::max(most, arrays.at(optimizer.parameters()[id].group));
    of_buffers.push_back(most);
  }
  return plan.memory(optimizer.communicator()->rank(), of_buffers);
}

OptimizerOptions options_of(std::int64_t bucket_bytes,
                            const Partitioning& partition) {
  OptimizerOptions options;
  options.rule = AdamW{};
  options.groups["plain"] = Sgd{};
  options.groups["amsgrad"] = AdamW{.amsgrad = true};
  options.plan.bucket_bytes = bucket_bytes;
  partition.set(options.plan);
  return options;
}

const std::map<std::string, std::size_t> arrays_of = {
    {"default", 2}, {"plain", 0}, {"amsgrad", 3}};

ParameterOptions random_kind(std::mt19937& engine) {
  const auto below = [&](unsigned count) { return engine() % count; };
  constexpr const char* groups[] = {"default", "plain", "amsgrad"};
  ParameterOptions kind = typed(static_cast<DType>(below(4)));
  if (below(3) == 0) kind.gradient_dtype = static_cast<DType>(below(4));
  kind.group = groups[below(3)];
  kind.chunk = static_cast<int>(below(2));
  kind.frozen = below(6) == 0;
  return kind;
}

TEST(Memory, AfterAStepIsThatOfThePlan) {
  const std::int64_t sizes[] = {0, 1, 7, 64, 700, 3000, 20'000};
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 engine(seed);
    ParameterSet model;
    for (auto i = engine() % 12; i > 0; --i)
      model.add(detail::concat("p", i), {sizes[engine() % 7]},
                random_kind(engine));
    const std::int64_t bucket_bytes[] = {1, 3000, 60'000, 25 << 20};
    // A communicator of its own: it keeps what it has grown to.
    const Mode mode = all_modes()[engine() % 8];
    const Backend backend = seed % 2 == 0 ? Backend::mpi : Backend::node;
    ShardedOptimizer optimizer(world(backend), model,
                               mode.in(options_of(bucket_bytes[engine() % 4],
                                                  some_partition(int(seed)))));
    optimizer.step();
    Memory expected = planned(optimizer, arrays_of);
    // Contributions stay where they are.
    if (backend == Backend::node) expected.staging = 0;
    expect_equal(optimizer.memory(), expected);
    optimizer.step();
    expect_equal(optimizer.memory(), expected);
  }
}

TEST(Memory, OfParametersOfTheCallerIsThatOfThePlan) {
  const std::vector<std::int64_t> shapes[] = {
      {}, {0, 3}, {7}, {20, 35}, {100, 200}};
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 engine(seed);
    ParameterSet model;
    for (auto i = engine() % 12; i > 0; --i) {
      const ParameterOptions kind = random_kind(engine);
      const auto& shape = shapes[engine() % 5];
      const std::string name = detail::concat("p", i);
      const DType gradient = kind.gradient_dtype.value_or(
          size_of(kind.dtype) == 2 ? DType::float32 : kind.dtype);
      if (engine() % 2 == 0)
        model.add(name, shape, kind);
      else
        Own(shape, static_cast<Order>(engine() % 3), kind.dtype, gradient)
            .add_to(model, name, kind);
    }
    ShardedOptimizer optimizer(world(), model,
                               options_of(3000, some_partition(int(seed))));
    Memory expected = planned(optimizer, arrays_of);
    // Nothing was reduced yet.
    expected.staging = 2 * detail::gather_piece_bytes(optimizer.plan());
    expect_equal(optimizer.memory(), expected);
  }
}

}  // namespace
}  // namespace kzero::test
