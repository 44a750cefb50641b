// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Bytes by purpose, worked out by hand. That they are those of an optimizer,
// tests/optim/test_memory.cpp shows.
#include <gtest/gtest.h>

#include "layout/layout_testing.hpp"

namespace kzero::test {
namespace {

void expect_memory(const Memory& memory, const Memory& expected) {
  EXPECT_EQ(memory.parameters, expected.parameters);
  EXPECT_EQ(memory.gradients, expected.gradients);
  EXPECT_EQ(memory.averaged, expected.averaged);
  EXPECT_EQ(memory.main, expected.main);
  EXPECT_EQ(memory.moments, expected.moments);
  EXPECT_EQ(memory.staging, expected.staging);
}

Plan plan_of_one(int ranks, ParameterOptions options, bool external,
                 std::int64_t bucket_bytes = PlanOptions::unlimited) {
  ParameterSet set;
  if (external)
    add_external(set, "w", 12 * 64, options);
  else
    set.add("w", {12 * 64}, options);
  return make_plan(set, {.ranks = ranks, .bucket_bytes = bucket_bytes});
}

TEST(PlanMemory, OfParametersInBuckets) {
  constexpr std::int64_t n = 12 * 64;
  expect_memory(plan_of_one(1, {}, false).memory(0, 2),
                {.parameters = 4 * n, .gradients = 4 * n, .moments = 8 * n});
  // Two slots for a third of the gradients from each of two peers.
  expect_memory(plan_of_one(3, {}, false).memory(2, 1),
                {.parameters = 4 * n,
                 .gradients = 4 * n,
                 .moments = 4 * n / 3,
                 .staging = 2 * 2 * 4 * n / 3});
  const ParameterOptions half{.dtype = DType::bfloat16};
  expect_memory(plan_of_one(2, half, false).memory(1, 2),
                {.parameters = 2 * n,
                 .gradients = 4 * n,
                 .main = 4 * n / 2,
                 .moments = 8 * n / 2,
                 .staging = 2 * 4 * n / 2});
  const ParameterOptions halves{.dtype = DType::bfloat16,
                                .gradient_dtype = DType::bfloat16};
  expect_memory(plan_of_one(2, halves, false).memory(0, 0),
                {.parameters = 2 * n,
                 .gradients = 2 * n,
                 .averaged = 4 * n / 2,
                 .main = 4 * n / 2,
                 .staging = 2 * 2 * n / 2});
  const ParameterOptions mixed{.dtype = DType::float64,
                               .gradient_dtype = DType::float32};
  expect_memory(plan_of_one(1, mixed, false).memory(0, 3), {.parameters = 8 * n,
                                                            .gradients = 4 * n,
                                                            .averaged = 8 * n,
                                                            .moments = 24 * n});
}

TEST(PlanMemory, OfExternalParameters) {
  constexpr std::int64_t n = 12 * 64;
  expect_memory(plan_of_one(1, {}, true).memory(0, 2), {.gradients = 4 * n,
                                                        .main = 4 * n,
                                                        .moments = 8 * n,
                                                        .staging = 2 * 4 * n});
  // In buckets of one parameter, through pieces of 2 * 128 elements.
  expect_memory(
      plan_of_one(2, {.dtype = DType::float64}, true, 2100).memory(0, 2),
      {.gradients = 8 * n,
       .main = 8 * n / 2,
       .moments = 16 * n / 2,
       .staging = 2 * 8 * n / 2 + 2 * 2 * 128 * 8});
  expect_memory(plan_of_one(2, {.dtype = DType::float16}, true).memory(0, 2),
                {.gradients = 4 * n,
                 .main = 4 * n / 2,
                 .moments = 8 * n / 2,
                 .staging = 2 * 4 * n / 2 + 2 * 2 * n});
}

TEST(PlanMemory, OfFrozenParameters) {
  constexpr std::int64_t n = 12 * 64;
  expect_memory(plan_of_one(3, {.frozen = true}, false).memory(0, 2),
                {.parameters = 4 * n});
  expect_memory(plan_of_one(3, {.frozen = true}, true).memory(0, 2),
                {.staging = 2 * 4 * n});
}

TEST(PlanMemory, OfStateByBuffer) {
  ParameterSet set;
  set.add("a", {64});
  set.add("b", {128}, {.dtype = DType::float64});
  const Plan plan = make_plan(set, {.ranks = 1});
  ASSERT_EQ(plan.buffers()[0].dtype, DType::float64);
  const std::vector<std::size_t> arrays = {1, 3};
  EXPECT_EQ(plan.memory(0, arrays).moments, 128 * 8 + 3 * 64 * 4);
}

TEST(PlanMemory, OfTwoSlotsForTheLargestPiece) {
  // Two ranks, one peer; buckets of one parameter, last one first.
  const auto staging = [](std::vector<std::int64_t> sizes,
                          std::int64_t bucket_bytes) {
    return plan_of(sizes, 2, bucket_bytes).memory(0, 0).staging;
  };
  // Shards of 64, 128 and 512 elements, each one piece.
  EXPECT_EQ(staging({1024, 256, 128}, 1), 2 * 4 * 512);
  EXPECT_EQ(staging({256, 1024, 128}, 1), 2 * 4 * 512);
  // Pieces of 2048 elements, and one of 4000 - 2048.
  EXPECT_EQ(staging({64 * 125}, 1), 2 * 4 * 2048);
  EXPECT_EQ(staging({10'000}, 1), 4 * (2048 + 2048));
}

TEST(PlanMemory, IsASmallPartOnManyRanks) {
  const int ranks = 10'000;
  const std::int64_t n = std::int64_t{64} * ranks * 1000;
  const Plan plan = plan_of({n}, ranks);
  const Memory memory = plan.memory(ranks - 1, 2);
  EXPECT_EQ(memory.moments, 8 * n / ranks);
  EXPECT_EQ(memory.state(), memory.moments);
  EXPECT_EQ(memory.total(), memory.parameters + memory.gradients +
                                memory.state() + memory.staging);
}

TEST(PlanMemory, OfOwners) {
  // 640 elements of rank 0, 128 of rank 1, nothing of rank 2.
  ParameterSet set;
  set.add("a", {640}, {.dtype = DType::bfloat16});
  set.add("b", {128}, {.dtype = DType::bfloat16});
  const auto memory = [&](int rank) {
    return make_plan(set, {.ranks = 3, .partition = Partition::parameters})
        .memory(rank, 2);
  };
  // Two slots for what two peers send of it.
  expect_memory(memory(0), {.parameters = 2 * 768,
                            .gradients = 4 * 768,
                            .main = 4 * 640,
                            .moments = 8 * 640,
                            .staging = 2 * 2 * 4 * 640});
  expect_memory(memory(1), {.parameters = 2 * 768,
                            .gradients = 4 * 768,
                            .main = 4 * 128,
                            .moments = 8 * 128,
                            .staging = 2 * 2 * 4 * 128});
  expect_memory(memory(2), {.parameters = 2 * 768, .gradients = 4 * 768});
}

TEST(PlanMemory, RefusesWhatThePlanDoesNotHave) {
  const Plan plan = plan_of({1, 2}, 3);
  const std::vector<std::size_t> two = {1, 1};
  expect_refused([&] { plan.memory(-1, 2); }, {"rank", "below 3", "got -1"});
  expect_refused([&] { plan.memory(3, 2); }, {"rank", "below 3", "got 3"});
  expect_refused([&] { plan.memory(0, two); },
                 {"state_arrays", "expected 1", "got 2"});
  EXPECT_EQ(make_plan(ParameterSet(), {.ranks = 3}).memory(1, 2).total(), 0);
}

}  // namespace
}  // namespace kzero::test
