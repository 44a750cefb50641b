// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which memory an optimizer takes, from which communicator, and what lies
// where.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "layout/exchange_pieces.hpp"
#include "storage/storage.hpp"
#include "support/counting_communicator.hpp"
#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"

namespace kzero::test {
namespace {

using detail::Storage;

class AllocatingCommunicator : public CountingCommunicator {
 public:
  using CountingCommunicator::CountingCommunicator;
  std::shared_ptr<void> allocate(std::int64_t bytes) override {
    allocated += bytes;
    return CountingCommunicator::allocate(bytes);
  }
  std::int64_t allocated = 0;
};

class StorageTest : public testing::Test {
 protected:
  StorageTest() {
    set.add("plain", {500});
    set.add("half", {300}, typed(DType::bfloat16));
    left.add_to(set, "left");
    gaps.add_to(set, "gaps", {.chunk = 1});
    wide.add_to(set, "wide");
    half.add_to(set, "own half");
    set.add("frozen", own_frozen.array(), {.frozen = true});
    set.add("left again", {40, 30}, {.tied_to = "left"});
    plan = make_plan(set, {.ranks = gather.size(), .bucket_bytes = 2000});
  }

  std::unique_ptr<Storage> make(std::size_t state_arrays) {
    const std::vector<std::size_t> arrays(plan.buffers().size(), state_arrays);
    return std::make_unique<Storage>(
        plan, set, detail::StorageCommunicators{gather, reduce}, arrays,
        ExecutionSpace());
  }

  const Buffer& buffer_of(std::int64_t bucket) const {
    const int buffer = plan.buckets()[static_cast<std::size_t>(bucket)].buffer;
    return plan.buffers()[static_cast<std::size_t>(buffer)];
  }

  AllocatingCommunicator gather{world()};
  AllocatingCommunicator reduce{world()};
  const Own left{{40, 30}, Order::left};
  const Own gaps{{7, 11, 3}, Order::gaps};
  const Own wide{{100}, Order::right, DType::float64, DType::float32};
  const Own half{{600}, Order::gaps, DType::float16};
  const OwnArray own_frozen{DType::float32, {90}, Order::gaps};
  ParameterSet set;
  Plan plan;
};

TEST_F(StorageTest, TakesParametersFromOneAndGradientsFromTheOther) {
  const auto storage = make(2);
  const Memory& memory = storage->memory();
  EXPECT_EQ(gather.allocated, memory.parameters + memory.staging);
  EXPECT_EQ(reduce.allocated, memory.gradients);
  EXPECT_GT(memory.parameters, 0);
  EXPECT_EQ(memory.staging, 2 * detail::gather_piece_bytes(plan));
}

TEST_F(StorageTest, ReportsWhatThePlanSays) {
  for (const std::size_t arrays : {0u, 1u, 3u}) {
    const Memory memory = make(arrays)->memory();
    const Memory expected = plan.memory(gather.rank(), arrays);
    EXPECT_EQ(memory.parameters, expected.parameters);
    EXPECT_EQ(memory.gradients, expected.gradients);
    EXPECT_EQ(memory.averaged, expected.averaged);
    EXPECT_EQ(memory.main, expected.main);
    EXPECT_EQ(memory.moments, expected.moments);
  }
}

TEST_F(StorageTest, HasNoParametersOfExternalBuckets) {
  const auto storage = make(1);
  int external = 0;
  for (std::int64_t b = 0; b < std::ssize(plan.buckets()); ++b) {
    const bool is_external = buffer_of(b).external;
    external += is_external ? 1 : 0;
    EXPECT_EQ(storage->parameter_bucket(b) == nullptr, is_external) << b;
    EXPECT_EQ(storage->parameter_shard(b) == nullptr, is_external) << b;
  }
  EXPECT_GT(external, 4);
}

/// Bytes [begin, begin + size).
struct Stretch {
  std::byte* begin = nullptr;
  std::int64_t size = 0;
  friend bool operator<(const Stretch& a, const Stretch& b) {
    return a.begin < b.begin;
  }
};

TEST_F(StorageTest, OfExternalBucketsIsApartAndStartsAsZeros) {
  const auto storage = make(2);
  std::set<Stretch> all;
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
    const Buffer& buffer = buffer_of(b);
    if (!buffer.external) continue;
    const std::int64_t shard =
        plan.shards(b).size(gather.rank()) * size_of(main_dtype(buffer.dtype));
    all.insert({storage->gradient_bucket(b),
                plan.shards(b).total() * size_of(buffer.gradient_dtype)});
    all.insert({storage->main_shard(b), shard});
    all.insert({storage->state_shard(b, 0), shard});
    all.insert({storage->state_shard(b, 1), shard});
    if (buffer.has_averaged()) all.insert({storage->averaged_shard(b), shard});
  }
  const std::int64_t piece = detail::gather_piece_bytes(plan);
  EXPECT_EQ(storage->gather_piece_bytes(), piece);
  all.insert({storage->gather_piece(0), piece});
  all.insert({storage->gather_piece(1), piece});
  const std::byte* end = nullptr;
  for (const Stretch& stretch : all) {
    EXPECT_GE(stretch.begin, end) << "they overlap";
    end = stretch.begin + stretch.size;
    EXPECT_TRUE(
        std::all_of(stretch.begin, stretch.begin + stretch.size,
                    [](std::byte byte) { return byte == std::byte{}; }));
  }
}

TEST_F(StorageTest, ZeroesTheCallersGradientsAndNothingElse) {
  const auto storage = make(0);
  for (const Own* own : {&left, &gaps, &wide, &half}) {
    own->gradient.fill([](std::int64_t i) { return double(i % 100) + 1.0; });
    own->value.fill([](std::int64_t) { return 3.0; });
  }
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b)
    if (!buffer_of(b).external)
      *reinterpret_cast<float*>(storage->gradient_bucket(b)) = 5.0f;
  storage->zero_gradients(ExecutionSpace());
  for (const Own* own : {&left, &gaps, &wide, &half}) {
    const auto count = static_cast<std::size_t>(own->value.size());
    EXPECT_EQ(own->gradient.values(), std::vector<double>(count, 0.0));
    EXPECT_EQ(own->value.values(), std::vector<double>(count, 3.0));
    EXPECT_TRUE(own->gaps_are_whole());
  }
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b)
    EXPECT_EQ(*reinterpret_cast<float*>(storage->gradient_bucket(b)), 0.0f);
}

TEST_F(StorageTest, ZeroesLargeGradientsOfAnyOrder) {
  ParameterSet large;
  const Own transposed{{300, 400}, Order::left};
  const Own strided{{70'000}, Order::gaps, DType::bfloat16, DType::bfloat16};
  transposed.add_to(large, "transposed");
  strided.add_to(large, "strided");
  const Plan of_large = make_plan(large, {.ranks = gather.size()});
  const std::vector<std::size_t> none(2, 0);
  const Storage storage(of_large, large, {gather, reduce}, none,
                        ExecutionSpace());
  for (const Own* own : {&transposed, &strided})
    own->gradient.fill([](std::int64_t) { return 1.0; });
  storage.zero_gradients(ExecutionSpace());
  for (const Own* own : {&transposed, &strided}) {
    const auto count = static_cast<std::size_t>(own->value.size());
    EXPECT_EQ(own->gradient.values(), std::vector<double>(count, 0.0));
    EXPECT_TRUE(own->gaps_are_whole());
  }
}

TEST_F(StorageTest, WithoutExternalParametersHasNoPieces) {
  ParameterSet plain;
  plain.add("w", {100});
  const Plan of_plain = make_plan(plain, {.ranks = gather.size()});
  const std::vector<std::size_t> none(1, 0);
  const Storage storage(of_plain, plain, {gather, gather}, none,
                        ExecutionSpace());
  EXPECT_EQ(storage.gather_piece(0), nullptr);
  EXPECT_EQ(storage.gather_piece_bytes(), 0);
}

}  // namespace
}  // namespace kzero::test
