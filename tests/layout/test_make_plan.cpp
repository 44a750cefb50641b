// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/plan.hpp>
#include <limits>
#include <utility>

#include "layout/layout_testing.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t one = 1;

Range placed(const Plan& plan, std::int64_t parameter) {
  return plan.placement(ParameterId{parameter}).in_buffer;
}

TEST(MakePlan, WithoutCap) {
  const Plan plan = plan_of({100, 70, 5}, 4);
  EXPECT_EQ(plan.ranks(), 4);
  ASSERT_EQ(plan.buffers().size(), 1u);
  EXPECT_EQ(plan.buffers()[0].size, 512);
  EXPECT_EQ(plan.buffers()[0].dtype, DType::float32);
  EXPECT_EQ(plan.buffers()[0].gradient_dtype, DType::float32);
  EXPECT_EQ(plan.buffers()[0].parameters,
            (std::vector<ParameterId>{{2}, {1}, {0}}));
  ASSERT_EQ(plan.buckets().size(), 1u);
  EXPECT_EQ(plan.buckets()[0].range, (Range{0, 512}));
  EXPECT_EQ(plan.buckets()[0].parameters, (Range{0, 3}));
  EXPECT_EQ(plan.shards(0).size(3), 128);
  EXPECT_EQ(placed(plan, 2), (Range{0, 5}));
  EXPECT_EQ(placed(plan, 1), (Range{64, 134}));
  EXPECT_EQ(placed(plan, 0), (Range{192, 292}));
}

TEST(MakePlan, WithCap) {
  const Plan plan = plan_of({100, 70, 5}, 4, 240);
  EXPECT_EQ(plan.bucket_bytes(), 240);
  ASSERT_EQ(plan.buckets().size(), 2u);
  EXPECT_EQ(plan.buckets()[0].range, (Range{0, 256}));
  EXPECT_EQ(plan.buckets()[0].parameters, (Range{0, 2}));
  EXPECT_EQ(plan.buckets()[1].range, (Range{256, 512}));
  EXPECT_EQ(plan.buckets()[1].parameters, (Range{2, 3}));
  EXPECT_EQ(plan.buffers()[0].size, 512);
  EXPECT_EQ(placed(plan, 1), (Range{64, 134}));
  EXPECT_EQ(placed(plan, 0), (Range{256, 356}));
  EXPECT_EQ(plan.placement(ParameterId{2}).bucket, 0);
  EXPECT_EQ(plan.placement(ParameterId{1}).bucket, 0);
  EXPECT_EQ(plan.placement(ParameterId{0}).bucket, 1);
}

TEST(MakePlan, ParameterWithoutElements) {
  const Plan plan = plan_of({8, 0, 24}, 2);
  ASSERT_EQ(plan.buckets().size(), 1u);
  EXPECT_EQ(plan.buckets()[0].range, (Range{0, 128}));
  EXPECT_EQ(plan.buckets()[0].parameters, (Range{0, 3}));
  EXPECT_EQ(placed(plan, 2), (Range{0, 24}));
  EXPECT_EQ(placed(plan, 1), (Range{64, 64}));
  EXPECT_EQ(placed(plan, 0), (Range{64, 72}));
}

TEST(MakePlan, FewElementsOnManyRanks) {
  const Plan plan = plan_of({5}, 256);
  ASSERT_EQ(plan.buckets().size(), 1u);
  EXPECT_EQ(plan.buckets()[0].range, (Range{0, 16384}));
}

TEST(MakePlan, OfNoParametersHasNoBuffers) {
  const Plan plan = make_plan(ParameterSet(), {.ranks = 3});
  EXPECT_TRUE(plan.buffers().empty());
  EXPECT_TRUE(plan.buckets().empty());
  EXPECT_EQ(plan.ranks(), 3);
  EXPECT_TRUE(plan.segments(2).empty());
}

TEST(MakePlan, OfEmptyParametersHasOneEmptyBucket) {
  const Plan plan = plan_of({0, 0}, 3, 1);
  ASSERT_EQ(plan.buffers().size(), 1u);
  EXPECT_EQ(plan.buffers()[0].size, 0);
  ASSERT_EQ(plan.buckets().size(), 1u);
  EXPECT_EQ(plan.buckets()[0].range, (Range{0, 0}));
  EXPECT_EQ(plan.buckets()[0].parameters, (Range{0, 2}));
  EXPECT_EQ(plan.shards(0).total(), 0);
  EXPECT_EQ(placed(plan, 0), (Range{0, 0}));
}

TEST(MakePlan, TheCapCountsBytesOfGradients) {
  // 64 bfloat16 elements: 256 bytes of float32 gradients, 128 of bfloat16.
  for (const DType gradient : {DType::float32, DType::bfloat16}) {
    const std::int64_t bytes = 64 * size_of(gradient);
    for (const std::int64_t cap : {bytes - 1, bytes, bytes + 1}) {
      ParameterSet set;
      for (const char* name : {"a", "b"})
        set.add(name, {64},
                {.dtype = DType::bfloat16, .gradient_dtype = gradient});
      const Plan plan = make_plan(set, {.ranks = 1, .bucket_bytes = cap});
      EXPECT_EQ(plan.buckets().size(), cap <= bytes ? 2u : 1u) << cap;
    }
  }
}

TEST(MakePlan, EachTypeAndChunkHasItsBuffer) {
  ParameterSet set;
  set.add("a", {10}, {.dtype = DType::bfloat16});
  set.add("b", {10}, {.dtype = DType::float32});
  set.add("c", {10}, {.dtype = DType::bfloat16, .chunk = 1});
  set.add("d", {10},
          {.dtype = DType::bfloat16, .gradient_dtype = DType::bfloat16});
  set.add("e", {10}, {.dtype = DType::bfloat16});
  set.add("f", {10}, {.dtype = DType::float64});
  set.add("g", {10}, {.dtype = DType::float16});

  const Plan plan = make_plan(set, {.ranks = 2});

  // Buffers in the order of their first parameter, buckets of their last one.
  const std::vector<std::vector<ParameterId>> buffers = {
      {{6}}, {{5}}, {{4}, {0}}, {{3}}, {{2}}, {{1}}};
  ASSERT_EQ(plan.buffers().size(), buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers()[b];
    EXPECT_EQ(buffer.parameters, buffers[b]);
    EXPECT_EQ(buffer.size, 128);
    for (const ParameterId id : buffer.parameters) {
      EXPECT_EQ(buffer.dtype, set[id].dtype);
      EXPECT_EQ(buffer.gradient_dtype, set[id].gradient_dtype);
      EXPECT_EQ(buffer.chunk, set[id].chunk);
    }
  }
  std::vector<int> order;
  for (const Bucket& bucket : plan.buckets()) order.push_back(bucket.buffer);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 3, 4, 5, 2}));
  EXPECT_EQ(plan.placement(ParameterId{0}).bucket, 5);
  EXPECT_EQ(plan.placement(ParameterId{1}).bucket, 4);
}

TEST(MakePlan, ExternalParametersHaveBuffersOfTheirOwn) {
  ParameterSet set;
  set.add("a", {100});
  add_external(set, "b", 70, {});
  set.add("c", {5}, {.frozen = true});
  add_external(set, "d", 9, {.frozen = true});
  add_external(set, "e", 30, {});
  set.add("e again", {30}, {.tied_to = "e"});
  add_external(set, "f", 8, {.dtype = DType::bfloat16});

  const Plan plan = make_plan(set, {.ranks = 2});

  const std::vector<std::vector<ParameterId>> buffers = {
      {{6}}, {{4}, {1}}, {{3}}, {{2}}, {{0}}};
  const std::vector<std::pair<bool, bool>> frozen_external = {{false, true},
                                                              {false, true},
                                                              {true, true},
                                                              {true, false},
                                                              {false, false}};
  ASSERT_EQ(plan.buffers().size(), buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    EXPECT_EQ(plan.buffers()[b].parameters, buffers[b]);
    EXPECT_EQ(plan.buffers()[b].frozen, frozen_external[b].first);
    EXPECT_EQ(plan.buffers()[b].external, frozen_external[b].second);
  }
  // The rules of the layout are the same.
  EXPECT_EQ(plan.trained_buckets(), 3);
  EXPECT_EQ(placed(plan, 4), (Range{0, 30}));
  EXPECT_EQ(placed(plan, 5), (Range{0, 30}));
  EXPECT_EQ(placed(plan, 1), (Range{64, 134}));
  EXPECT_EQ(plan.buffers()[1].size, 256);
}

TEST(MakePlan, BucketsOfSeveralBuffersAreOrderedByTheirLastParameter) {
  // In layout order: b1 (open), then f1 fills a bucket, b2 ends b's bucket,
  // f2 stays open to the end, as does b3.
  ParameterSet set;
  const DType bf16 = DType::bfloat16;
  const ParameterId b3 = set.add("b3", {1}, {.dtype = bf16});
  const ParameterId f2 = set.add("f2", {1});
  const ParameterId b2 = set.add("b2", {100}, {.dtype = bf16});
  const ParameterId f1 = set.add("f1", {100});
  const ParameterId b1 = set.add("b1", {1}, {.dtype = bf16});

  const Plan plan = make_plan(set, {.ranks = 1, .bucket_bytes = 400});

  ASSERT_EQ(plan.buckets().size(), 4u);
  EXPECT_EQ(plan.placement(f1).bucket, 0);
  EXPECT_EQ(plan.placement(b1).bucket, 1);
  EXPECT_EQ(plan.placement(b2).bucket, 1);
  EXPECT_EQ(plan.placement(f2).bucket, 2);
  EXPECT_EQ(plan.placement(b3).bucket, 3);
  EXPECT_EQ(plan.buckets()[3].range, (Range{192, 256}));
}

TEST(MakePlan, ExplicitOrder) {
  PlanOptions options{.ranks = 1, .bucket_bytes = 280};
  options.order = {{1}, {0}, {2}};
  const Plan plan = make_plan(parameters_of({100, 70, 5}), options);
  EXPECT_EQ(plan.buffers()[0].parameters, options.order);
  EXPECT_EQ(placed(plan, 1), (Range{0, 70}));
  EXPECT_EQ(placed(plan, 0), (Range{128, 228}));
  EXPECT_EQ(placed(plan, 2), (Range{256, 261}));
  EXPECT_EQ(plan.buckets().size(), 3u);
}

TEST(MakePlan, MillionParameters) {
  const std::int64_t count = 1'000'000;
  ParameterSet set;
  for (std::int64_t i = 0; i < count; ++i)
    set.add("p" + std::to_string(i), {i % 131});
  const int ranks = 7;
  const std::int64_t cap = std::int64_t{1} << 16;

  const Plan plan = make_plan(set, {.ranks = ranks, .bucket_bytes = cap});

  std::int64_t end = 0;
  std::int64_t bucket = 0;
  Range range = plan.buckets()[0].range;
  for (std::int64_t i = count - 1; i >= 0; --i) {
    const Placement& placement = plan.placement(ParameterId{i});
    if (placement.bucket != bucket) {
      ASSERT_EQ(placement.bucket, ++bucket);
      ASSERT_GE((end - range.begin) * 4, cap);
      ASSERT_EQ(plan.buckets()[static_cast<std::size_t>(bucket)].range.begin,
                range.end);
      range = plan.buckets()[static_cast<std::size_t>(bucket)].range;
      ASSERT_EQ(range.size() % (64 * ranks), 0);
      end = range.begin;
    }
    ASSERT_EQ(placement.in_buffer.begin, (end + 63) / 64 * 64);
    ASSERT_EQ(placement.in_buffer.size(), i % 131);
    end = placement.in_buffer.end;
  }
  ASSERT_EQ(bucket + 1, std::ssize(plan.buckets()));

  // Every element once, in at most one segment a parameter and a cut.
  std::int64_t elements = 0;
  std::int64_t segments = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Segment& segment : plan.segments(rank)) {
      elements += segment.in_parameter.size();
      ++segments;
    }
  }
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < count; ++i) expected += i % 131;
  EXPECT_EQ(elements, expected);
  EXPECT_LE(segments, count + ranks * std::ssize(plan.buckets()));
}

TEST(MakePlan, TotalsPast2To59ElementsAreRefused) {
  const std::int64_t half = one << 58;
  EXPECT_EQ(plan_of({half, half}, 1).buffers()[0].size, one << 59);
  EXPECT_EQ(plan_of({half, half}, 1, 1).buckets().size(), 2u);

  const Lines words = {"do not fit", "\"p0\"", "2^59"};
  expect_refused([&] { plan_of({1, half, half}, 1); }, words);
  expect_refused([&] { plan_of({one << 60, half}, 1); }, words);
  // The parameters fit, the padding does not.
  expect_refused([&] { plan_of({half, half}, 3); }, words);

  ParameterSet set;
  set.add("p0", {half + 1});
  set.add("other buffer", {half}, {.dtype = DType::float64});
  expect_refused([&] { make_plan(set, {.ranks = 1}); }, words);
  set = {};
  set.add("p0", {one << 61}, {.dtype = DType::bfloat16});
  set.add("p1", {one << 61}, {.dtype = DType::bfloat16});
  expect_refused([&] { make_plan(set, {.ranks = 1}); }, {"2^59"});
}

TEST(MakePlan, TheMostRanks) {
  const int ranks = std::numeric_limits<int>::max();
  const Plan plan = plan_of({100, 70, 5}, ranks);
  EXPECT_EQ(plan.buckets()[0].range.size(), std::int64_t{64} * ranks);
  EXPECT_EQ(plan.segments(4).size(), 1u);
  EXPECT_TRUE(plan.segments(ranks - 1).empty());
}

TEST(MakePlan, RefusesWrongOptions) {
  const ParameterSet set = parameters_of({1, 2, 3});
  const auto refused = [&](PlanOptions options, const Lines& words) {
    expect_refused([&] { make_plan(set, options); }, words);
  };
  refused({}, {"ranks", "1 or more", "got 0"});
  refused({.ranks = -1}, {"ranks", "got -1"});
  refused({.ranks = 1, .bucket_bytes = 0}, {"bucket_bytes", "got 0"});
  refused({.ranks = 1, .bucket_bytes = -5}, {"bucket_bytes", "got -5"});
  refused({.ranks = 1, .partition = static_cast<Partition>(7)},
          {"partition", "7"});
  refused({.ranks = 1, .order = {{0}, {1}}}, {"order", "expected 3", "got 2"});
  refused({.ranks = 1, .order = {{0}, {1}, {2}, {0}}}, {"order", "got 4"});
  refused({.ranks = 1, .order = {{0}, {1}, {1}}}, {"twice", "at 2", "\"p1\""});
  refused({.ranks = 1, .order = {{0}, {3}, {1}}}, {"at 1", "got 3"});
  refused({.ranks = 1, .order = {{0}, {}, {1}}}, {"at 1", "got -1"});
}

}  // namespace
}  // namespace kzero::test
