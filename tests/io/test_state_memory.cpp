// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What consolidate() and load_state() take beside the state: one array of one
// bucket on root, a shard of one on the others. What happens without it.
#include <gtest/gtest.h>

#include <kzero/kzero.hpp>
#include <optional>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "support/allocation_counter.hpp"

namespace kzero::test {
namespace {

constexpr int parameters = 8;
constexpr std::int64_t elements = 20000;
constexpr std::int64_t slack = 64 << 10;  // names, messages, plans

class StateMemory : public testing::Test {
 protected:
  static ShardedOptimizer make() {
    ParameterSet model;
    for (int i = 0; i < parameters; ++i)
      model.add(detail::concat("w", i), {elements},
                typed(i % 2 == 0 ? DType::float32 : DType::bfloat16));
    OptimizerOptions options;
    options.plan.bucket_bytes = elements * 4;
    return ShardedOptimizer(world(), model, options);
  }

  StateMemory() {
    write_start(optimizer, 1);
    train(optimizer, 1);
    state = optimizer.consolidate(root);  // what is allocated once
    optimizer.load_state(state, root);
  }

  /// Bytes of the largest array of a bucket, and of this rank's shards.
  std::int64_t largest_array() const {
    std::int64_t bytes = 0;
    for (const Bucket& bucket : optimizer.plan().buckets())
      bytes = std::max(bytes, bucket.range.size() * 4);
    return bytes;
  }
  std::int64_t largest_shard() const {
    std::int64_t bytes = 0;
    for (std::int64_t b = 0; b < optimizer.plan().trained_buckets(); ++b)
      bytes = std::max(bytes, optimizer.plan().shards(b).size(rank) * 4);
    return bytes;
  }

  static std::int64_t bytes_of(const OptimizerState& of) {
    std::int64_t bytes = 0;
    for (const ParameterState& parameter : of.parameters)
      for (const StateArray& array : parameter.arrays)
        bytes += static_cast<std::int64_t>(array.bytes.size());
    return bytes;
  }

  ShardedOptimizer optimizer = make();
  const int root = optimizer.communicator()->size() - 1;
  const int rank = optimizer.communicator()->rank();
  const bool is_root = rank == root;
  std::optional<OptimizerState> state;
};

TEST_F(StateMemory, OfConsolidateIsTheStateAndOneArray) {
  ASSERT_EQ(optimizer.plan().buckets().size(), std::size_t(parameters));
  std::optional<OptimizerState> again;
  const std::int64_t taken =
      allocated_bytes_of([&] { again = optimizer.consolidate(root); });
  EXPECT_EQ(again, state);
  if (is_root) {
    EXPECT_GE(taken, bytes_of(*state) + largest_array());
    EXPECT_LE(taken, bytes_of(*state) + largest_array() + slack);
  } else {
    EXPECT_LE(taken, slack);
  }
}

TEST_F(StateMemory, OfLoadStateIsOneArrayAndAShard) {
  const std::int64_t taken =
      allocated_bytes_of([&] { optimizer.load_state(state, root); });
  const std::int64_t expected =
      (is_root ? largest_array() : 0) + largest_shard();
  EXPECT_GE(taken, expected);
  EXPECT_LE(taken, expected + slack);
}

// An array of the state, and the array of a bucket that it passes through.
TEST_F(StateMemory, WithoutItConsolidateFailsOnEveryRank) {
  const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
  for (const std::int64_t bytes : {elements * 2, largest_array()}) {
    if (is_root) refused_bytes = static_cast<std::size_t>(bytes);
    const std::string message = checkpoint_error(
        [&] { static_cast<void>(optimizer.consolidate(root)); });
    refused_bytes = 0;
    EXPECT_TRUE(says(message, {"no memory"}));
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
  }
  EXPECT_EQ(optimizer.consolidate(root), state);
}

TEST_F(StateMemory, WithoutItNothingIsLoaded) {
  train(optimizer, 1);
  const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
  const bool refused[] = {is_root, rank == 0};
  const std::int64_t bytes[] = {largest_array(), largest_shard()};
  for (int i = 0; i < 2; ++i) {
    if (refused[i]) refused_bytes = static_cast<std::size_t>(bytes[i]);
    const std::string message =
        checkpoint_error([&] { optimizer.load_state(state, root); });
    refused_bytes = 0;
    EXPECT_TRUE(says(message, {"no memory"}));
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
  }
  optimizer.load_state(state, root);
  EXPECT_EQ(optimizer.consolidate(root), state);
}

}  // namespace
}  // namespace kzero::test
