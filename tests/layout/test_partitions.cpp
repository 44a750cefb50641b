// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Partitions in which every parameter has one owner: who that is, and how a
// bucket is laid out for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <kzero/plan.hpp>
#include <memory>
#include <numeric>

#include "layout/gpt2_small.hpp"
#include "layout/layout_testing.hpp"
#include "layout/owner_rules.hpp"

namespace kzero::test {
namespace {

std::vector<int> owners_of(const Plan& plan, const ParameterSet& set) {
  std::vector<int> owners;
  for (std::int64_t i = 0; i < set.size(); ++i)
    owners.push_back(plan.owner({i}).value_or(-1));
  return owners;
}

std::vector<int> owners_of(const std::vector<std::int64_t>& sizes,
                           const PlanOptions& options) {
  const ParameterSet set = parameters_of(sizes);
  return owners_of(make_plan(set, options), set);
}

std::vector<Range> shards_of(const Plan& plan, std::int64_t bucket) {
  std::vector<Range> shards;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    shards.push_back(plan.shards(bucket).range(rank));
  return shards;
}

using Ints = std::vector<int>;
using Ranges = std::vector<Range>;

TEST(Partitions, ParametersAreGivenAwayLargestFirst) {
  const PlanOptions options{.ranks = 2, .partition = Partition::parameters};
  EXPECT_EQ(owners_of({10, 7, 6, 3, 2}, options), (Ints{0, 1, 1, 0, 0}));
  // Ties: the lower index first, to the lower rank.
  EXPECT_EQ(owners_of({5, 5, 5, 5}, options), (Ints{0, 1, 0, 1}));
  EXPECT_EQ(owners_of({1, 0, 2, 0}, options), (Ints{1, 1, 0, 1}));
  EXPECT_EQ(owners_of({1, 2}, {.ranks = 4, .partition = Partition::parameters}),
            (Ints{1, 0}));
}

TEST(Partitions, BucketsAreLaidOutInTheOrderOfTheOwners) {
  // In layout order 4, 3, 2, 1, 0; rank 0 has 0, 3 and 4.
  const Plan plan = make_plan(parameters_of({100, 70, 60, 30, 20}),
                              {.ranks = 2, .partition = Partition::parameters});
  EXPECT_EQ(plan.partition(), Partition::parameters);
  ASSERT_EQ(plan.buckets().size(), 1u);
  EXPECT_EQ(plan.buckets()[0].range, (Range{0, 448}));
  EXPECT_EQ(plan.buffers()[0].parameters,
            (std::vector<ParameterId>{{4}, {3}, {0}, {2}, {1}}));
  EXPECT_EQ(shards_of(plan, 0), (Ranges{{0, 256}, {256, 448}}));
  EXPECT_EQ(
      segments_of(plan, 0),
      (Lines{"p4 bucket 0: buffer [0, 20) bucket [0, 20) shard [0, 20) "
             "parameter [0, 20)",
             "p3 bucket 0: buffer [64, 94) bucket [64, 94) shard [64, 94) "
             "parameter [0, 30)",
             "p0 bucket 0: buffer [128, 228) bucket [128, 228) shard [128, "
             "228) parameter [0, 100)"}));
  EXPECT_EQ(
      segments_of(plan, 1),
      (Lines{"p2 bucket 0: buffer [256, 316) bucket [256, 316) shard [0, 60) "
             "parameter [0, 60)",
             "p1 bucket 0: buffer [320, 390) bucket [320, 390) shard [64, "
             "134) parameter [0, 70)"}));
}

TEST(Partitions, WhoOwnsNothingInABucketHasAnEmptyShardAtItsPlace) {
  // Buckets of one parameter: 2, 1, 0.
  const Plan plan = make_plan(
      parameters_of({100, 70, 5}),
      {.ranks = 4, .partition = Partition::parameters, .bucket_bytes = 1});
  ASSERT_EQ(plan.buckets().size(), 3u);
  EXPECT_EQ(shards_of(plan, 0), (Ranges{{0, 0}, {0, 0}, {0, 64}, {64, 64}}));
  EXPECT_EQ(shards_of(plan, 1),
            (Ranges{{0, 0}, {0, 128}, {128, 128}, {128, 128}}));
  EXPECT_EQ(shards_of(plan, 2),
            (Ranges{{0, 128}, {128, 128}, {128, 128}, {128, 128}}));
  EXPECT_TRUE(plan.segments(3).empty());
}

TEST(Partitions, BucketsGoToOneRankEach) {
  // In layout order buckets of 5 + 70, 100 + 1, 30: sizes 75, 101, 30.
  const std::vector<std::int64_t> sizes = {30, 1, 100, 70, 5};
  const PlanOptions options{
      .ranks = 2, .partition = Partition::buckets, .bucket_bytes = 500};
  const Plan plan = make_plan(parameters_of(sizes), options);
  ASSERT_EQ(plan.buckets().size(), 3u);
  EXPECT_EQ(owners_of(sizes, options), (Ints{1, 0, 0, 1, 1}));
  EXPECT_EQ(shards_of(plan, 0), (Ranges{{0, 0}, {0, 192}}));
  EXPECT_EQ(shards_of(plan, 1), (Ranges{{0, 192}, {192, 192}}));
  EXPECT_EQ(shards_of(plan, 2), (Ranges{{0, 0}, {0, 64}}));
  // Ties: the bucket that comes first, to the lower rank.
  EXPECT_EQ(owners_of({9, 9, 9, 9}, {.ranks = 3,
                                     .partition = Partition::buckets,
                                     .bucket_bytes = 1}),
            (Ints{0, 2, 1, 0}));
}

TEST(Partitions, DivideCutsAsFewBucketsAsNeedBe) {
  // Four buckets of 40 + 40, and one of 8 + 8.
  const std::vector<std::int64_t> sizes(10, 40);
  PlanOptions options{
      .ranks = 2, .partition = Partition::buckets, .bucket_bytes = 400};
  EXPECT_EQ(owners_of(sizes, options), (Ints{0, 0, 1, 1, 0, 0, 1, 1, 0, 0}));
  // 5 buckets whole give 240 of a mean of 200; 2 whole and 6 apart 200.
  options.divide = true;
  EXPECT_EQ(owners_of(sizes, options), (Ints{0, 1, 0, 1, 0, 1, 1, 1, 0, 0}));
  EXPECT_TRUE(make_plan(parameters_of(sizes), options).divide());
  // Up to the largest parameter nothing is cut.
  std::vector<std::int64_t> with_large = sizes;
  with_large.push_back(1000);
  options.ranks = 3;
  const ParameterSet set = parameters_of(with_large);
  const Plan plan = make_plan(set, options);
  for (const Thing& bucket : buckets_of(plan))
    for (const ParameterId id : bucket)
      EXPECT_EQ(plan.owner(id), plan.owner(bucket[0]));
}

TEST(Partitions, DivideGoesAsFarAsWholeParameters) {
  // One bucket: with none whole it is the rule of parameters.
  const std::vector<std::int64_t> sizes = {10, 7, 6, 3, 2};
  EXPECT_EQ(
      owners_of(sizes,
                {.ranks = 2, .partition = Partition::buckets, .divide = true}),
      (Ints{0, 1, 1, 0, 0}));
  EXPECT_EQ(owners_of(sizes, {.ranks = 2, .partition = Partition::buckets}),
            (Ints{0, 0, 0, 0, 0}));
  // 3 and 3, 2, 2, 2 is the best, the rule gives 3 + 2 + 2 and 3 + 2.
  EXPECT_EQ(
      owners_of({3, 3, 2, 2, 2},
                {.ranks = 2, .partition = Partition::buckets, .divide = true}),
      (Ints{0, 1, 0, 1, 0}));
}

TEST(Partitions, OfAllBuffersTogether) {
  ParameterSet set;
  const ParameterId a = set.add("a", {100}, {.dtype = DType::bfloat16});
  const ParameterId b = set.add("b", {90});
  const ParameterId c = add_external(set, "c", 80, {});
  const ParameterId d = set.add("d", {70}, {.chunk = 1});
  const Plan plan =
      make_plan(set, {.ranks = 2, .partition = Partition::parameters});
  EXPECT_EQ(plan.buffers().size(), 4u);
  EXPECT_EQ(plan.owner(a), 0);
  EXPECT_EQ(plan.owner(b), 1);
  EXPECT_EQ(plan.owner(c), 1);
  EXPECT_EQ(plan.owner(d), 0);
}

TEST(Partitions, OfFrozenTiedAndEmptyParameters) {
  for (const Partition partition :
       {Partition::parameters, Partition::buckets}) {
    ParameterSet set;
    const ParameterId frozen = set.add("frozen", {1000}, {.frozen = true});
    const ParameterId large = set.add("large", {100});
    const ParameterId empty = set.add("empty", {0}, {.chunk = 1});
    const ParameterId small = set.add("small", {30}, {.chunk = 2});
    const ParameterId again = set.add("again", {100}, {.tied_to = "large"});
    const Plan plan = make_plan(set, {.ranks = 3, .partition = partition});
    EXPECT_EQ(plan.owner(frozen), std::nullopt);
    EXPECT_EQ(plan.owner(large), 0);
    EXPECT_EQ(plan.owner(again), 0);
    EXPECT_EQ(plan.owner(small), 1);
    EXPECT_EQ(plan.owner(empty), 2);
    EXPECT_EQ(plan.trained_buckets(), 3);
    EXPECT_EQ(shards_of(plan, 3),
              (Ranges{{0, 1024}, {1024, 1024}, {1024, 1024}}));
    EXPECT_EQ(plan.placement(again).in_buffer, plan.placement(large).in_buffer);
    EXPECT_EQ(plan.shards(plan.placement(empty).bucket).total(), 0);
  }
}

TEST(Partitions, OwnerIsKnownWhereThereIsOne) {
  const ParameterSet set = parameters_of({3, 4});
  EXPECT_EQ(make_plan(set, {.ranks = 2}).owner({0}), std::nullopt);
  EXPECT_EQ(make_plan(set, {.ranks = 1}).owner({0}), 0);
  EXPECT_EQ(make_plan(set, {.ranks = 1}).partition(), Partition::elements);
  for (const Partition partition : {Partition::parameters, Partition::buckets})
    EXPECT_EQ(make_plan(set, {.ranks = 1, .partition = partition}).owner({1}),
              0);
  expect_refused([&] { make_plan(set, {.ranks = 2}).owner({2}); },
                 {"below 2", "got 2"});
}

TEST(Partitions, CopiesOfAPlanHaveTablesOfTheirOwn) {
  auto plan = std::make_unique<Plan>(
      make_plan(parameters_of({100, 70}),
                {.ranks = 2, .partition = Partition::parameters}));
  const Plan copy = *plan;
  plan.reset();
  EXPECT_EQ(copy.shards(0).range(1), (Range{128, 256}));
}

TEST(Partitions, RefuseDivideWithoutBuckets) {
  for (const Partition partition : {Partition::elements, Partition::parameters})
    expect_refused(
        [&] {
          make_plan(parameters_of({1}),
                    {.ranks = 2, .partition = partition, .divide = true});
        },
        {"divide", "Partition::buckets"});
}

std::int64_t elements_of(const ParameterSet& set) {
  std::int64_t total = 0;
  for (const ParameterInfo& info : set.parameters()) total += info.size;
  return total;
}

std::int64_t most_of(const Plan& plan) {
  const auto loads = loads_of(plan);
  return *std::max_element(loads.begin(), loads.end());
}

TEST(GptTwoSmall, HasTheElementsThatItIsKnownFor) {
  const ParameterSet set = gpt2_small();
  EXPECT_EQ(set.size(), 148);
  EXPECT_EQ(elements_of(set), 124'439'808);
}

TEST(GptTwoSmall, IsGivenAwayByTheRules) {
  const ParameterSet set = gpt2_small();
  for (int ranks = 2; ranks <= 64; ++ranks)
    for (const bool whole : {true, false})
      for (const bool divide : {true, false}) {
        if (divide && whole) continue;
        const PlanOptions options{
            .ranks = ranks,
            .partition = whole ? Partition::parameters : Partition::buckets,
            .divide = divide};
        const Plan plan = make_plan(set, options);
        const Owners expected = OwnerRules(set).owners_of(
            buckets_of(plan), options,
            std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 0));
        for (const auto& [id, owner] : expected)
          ASSERT_EQ(plan.owner(id), owner)
              << set[id].name << " on " << ranks << " ranks";
      }
}

TEST(GptTwoSmall, IsSharedOutEvenly) {
  const ParameterSet set = gpt2_small();
  const std::int64_t total = elements_of(set);
  const std::int64_t largest = 50257 * 768;
  for (int ranks = 2; ranks <= 64; ++ranks) {
    for (const bool divide : {true, false}) {
      const Plan plan = make_plan(
          set,
          {.ranks = ranks,
           .partition = divide ? Partition::buckets : Partition::parameters,
           .divide = divide});
      const std::int64_t most = most_of(plan);
      EXPECT_TRUE(most <= largest || most * ranks * 20 <= total * 21)
          << most << " on " << ranks;
    }
    // Equal shards but for the padding: 63 elements at most for each parameter,
    // and 64 a rank for each bucket.
    const Plan equal = make_plan(set, {.ranks = ranks});
    const std::int64_t padding =
        64 * 148 / ranks + 64 * std::ssize(equal.buckets());
    EXPECT_LE(most_of(equal), total / ranks + padding);
  }
}

TEST(GptTwoSmall, IsSharedOutEvenlyWithoutEmbeddings) {
  const ParameterSet set = gpt2_small(Embeddings::without);
  const std::int64_t total = elements_of(set);
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (const bool divide : {true, false})
      EXPECT_LE(20 * ranks *
                    most_of(make_plan(
                        set, {.ranks = ranks,
                              .partition = divide ? Partition::buckets
                                                  : Partition::parameters,
                              .divide = divide})),
                21 * total)
          << ranks;
}

// Each parameter to one of ten thousand ranks; a sum over what each owns.
TEST(Partitions, OnTenThousandRanks) {
  const int ranks = 10'000;
  ParameterSet set;
  for (std::int64_t i = 0; i < 100'000; ++i)
    set.add("p" + std::to_string(i), {1 + i % 977});
  std::int64_t total = elements_of(set);
  for (const bool whole : {true, false})
    for (const bool divide : {true, false}) {
      if (divide && whole) continue;
      const Plan plan = make_plan(
          set, {.ranks = ranks,
                .partition = whole ? Partition::parameters : Partition::buckets,
                .divide = divide,
                .bucket_bytes = std::int64_t{1} << 20});
      const auto loads = loads_of(plan);
      EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}),
                total);
      if (whole || divide) {
        EXPECT_LE(most_of(plan), total / ranks + 977);
      }
      EXPECT_GT(plan.memory(0, 2).moments, 0);
    }
}

}  // namespace
}  // namespace kzero::test
