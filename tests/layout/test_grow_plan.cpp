// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/grow_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "layout/layout_testing.hpp"
#include "layout/owner_rules.hpp"

namespace kzero::test {
namespace {

using detail::grow_plan;

void expect_same_buffer(const Buffer& got, const Buffer& expected) {
  EXPECT_EQ(got.dtype, expected.dtype);
  EXPECT_EQ(got.gradient_dtype, expected.gradient_dtype);
  EXPECT_EQ(got.chunk, expected.chunk);
  EXPECT_EQ(got.frozen, expected.frozen);
  EXPECT_EQ(got.external, expected.external);
  EXPECT_EQ(got.size, expected.size);
  EXPECT_EQ(got.parameters, expected.parameters);
}

void expect_same_bucket(const Plan& plan, std::int64_t at, const Plan& old,
                        std::int64_t bucket) {
  const Bucket& got = plan.buckets()[static_cast<std::size_t>(at)];
  const Bucket& expected = old.buckets()[static_cast<std::size_t>(bucket)];
  EXPECT_EQ(got.buffer, expected.buffer);
  EXPECT_EQ(got.range, expected.range);
  EXPECT_EQ(got.parameters, expected.parameters);
  for (int rank = 0; rank < plan.ranks(); ++rank)
    EXPECT_EQ(plan.shards(at).range(rank), old.shards(bucket).range(rank));
}

/// What the old plan says is what the new one says.
void expect_kept(const Plan& plan, const Plan& old, std::int64_t parameters) {
  ASSERT_GE(plan.buffers().size(), old.buffers().size());
  for (std::size_t b = 0; b < old.buffers().size(); ++b)
    expect_same_buffer(plan.buffers()[b], old.buffers()[b]);
  const std::int64_t added = plan.trained_buckets() - old.trained_buckets();
  ASSERT_GE(added, 0);
  for (std::int64_t b = 0; b < std::ssize(old.buckets()); ++b)
    expect_same_bucket(plan, b < old.trained_buckets() ? b : b + added, old, b);
  for (std::int64_t i = 0; i < parameters; ++i) {
    const Placement& now = plan.placement({i});
    const Placement& before = old.placement({i});
    EXPECT_EQ(now.buffer, before.buffer);
    EXPECT_EQ(now.in_buffer, before.in_buffer);
    EXPECT_EQ(now.bucket, before.bucket < old.trained_buckets()
                              ? before.bucket
                              : before.bucket + added);
    EXPECT_EQ(plan.owner({i}), old.owner({i}));
  }
}

TEST(GrowPlan, PutsNewParametersIntoBuffersOfTheirOwn) {
  ParameterSet set;
  set.add("a", {100});
  set.add("frozen", {10}, {.frozen = true});
  const PlanOptions options{.ranks = 2};
  const Plan old = make_plan(set, options);
  const ParameterId b = set.add("b", {70});
  const ParameterId again = set.add("again", {100}, {.tied_to = "a"});
  const ParameterId cold = set.add("cold", {7}, {.frozen = true});
  const ParameterId c = set.add("c", {5});

  const Plan plan = grow_plan(old, set, options);

  expect_kept(plan, old, 2);
  ASSERT_EQ(plan.buffers().size(), 4u);
  EXPECT_EQ(plan.buffers()[2].parameters, (std::vector<ParameterId>{c, b}));
  EXPECT_EQ(plan.buffers()[3].parameters, (std::vector<ParameterId>{cold}));
  EXPECT_EQ(plan.placement(c).in_buffer, (Range{0, 5}));
  EXPECT_EQ(plan.placement(b).in_buffer, (Range{64, 134}));
  EXPECT_EQ(plan.placement(again).in_buffer, old.placement({0}).in_buffer);
  EXPECT_EQ(plan.placement(again).buffer, old.placement({0}).buffer);
  // Trained a, trained c and b, then frozen ones.
  EXPECT_EQ(plan.trained_buckets(), 2);
  EXPECT_EQ(plan.placement({0}).bucket, 0);
  EXPECT_EQ(plan.placement(b).bucket, 1);
  EXPECT_EQ(plan.placement({1}).bucket, 2);
  EXPECT_EQ(plan.placement(cold).bucket, 3);
  EXPECT_EQ(plan.buckets()[1].range, (Range{0, 256}));
}

TEST(GrowPlan, GoesOnFromWhatTheRanksHave) {
  const PlanOptions options{.ranks = 2, .partition = Partition::parameters};
  ParameterSet set = parameters_of({10, 7, 6});  // 10, and 7 + 6
  const Plan old = make_plan(set, options);
  for (const std::int64_t size : {2, 3})
    set.add("q" + std::to_string(size), {size});
  const Plan plan = grow_plan(old, set, options);
  expect_kept(plan, old, 3);
  // 3 to rank 0, which has 10; then 2 to it too: 13 and 13 is a tie.
  EXPECT_EQ(plan.owner({4}), 0);
  EXPECT_EQ(plan.owner({3}), 0);
}

TEST(GrowPlan, LaysOutInTheGivenOrder) {
  ParameterSet set = parameters_of({1, 2});
  PlanOptions options{.ranks = 1, .order = {{0}, {1}}};
  const Plan old = make_plan(set, options);
  for (const char* name : {"x", "y", "z"}) set.add(name, {1});
  const auto order_of = [&](std::vector<ParameterId> order) {
    options.order = std::move(order);
    return grow_plan(old, set, options).buffers()[1].parameters;
  };
  using Ids = std::vector<ParameterId>;
  // The old plan's own order names no new one.
  EXPECT_EQ(order_of({{0}, {1}}), (Ids{{4}, {3}, {2}}));
  EXPECT_EQ(order_of({}), (Ids{{4}, {3}, {2}}));
  EXPECT_EQ(order_of({{3}, {1}, {2}, {4}}), (Ids{{3}, {2}, {4}}));
  expect_refused(
      [&] {
        order_of({{2}, {3}});
      },
      {"order", "expected 3", "got 2"});
  expect_refused([&] { order_of({{2}, {3}, {2}}); }, {"twice", "\"x\""});
  expect_refused([&] { order_of({{5}}); }, {"below 5", "got 5"});
}

TEST(GrowPlan, ByNothingIsTheSamePlan) {
  for (const Partition partition :
       {Partition::elements, Partition::parameters, Partition::buckets}) {
    const ParameterSet set = parameters_of({100, 0, 30});
    const PlanOptions options{.ranks = 3, .partition = partition};
    const Plan old = make_plan(set, options);
    const Plan plan = grow_plan(old, set, options);
    EXPECT_EQ(plan.buffers().size(), old.buffers().size());
    EXPECT_EQ(plan.buckets().size(), old.buckets().size());
    expect_kept(plan, old, 3);
  }
}

TEST(GrowPlan, RefusesAnotherPlan) {
  ParameterSet set = parameters_of({100, 30});
  const PlanOptions options{.ranks = 3, .partition = Partition::buckets};
  const Plan old = make_plan(set, options);
  const auto with = [&](auto&& change, const Lines& words) {
    PlanOptions other = options;
    change(other);
    expect_refused([&] { grow_plan(old, set, other); }, words);
  };
  with([](auto& o) { o.ranks = 4; }, {"ranks", "expected 3", "got 4"});
  with([](auto& o) { o.ranks = 0; }, {"ranks", "got 0"});
  with([](auto& o) { o.partition = Partition::elements; }, {"partition"});
  with([](auto& o) { o.divide = true; }, {"divide"});
  with([](auto& o) { o.bucket_bytes = 7; }, {"bucket_bytes", "got 7"});
  set = parameters_of({100});
  with([](auto&) {}, {"fewer parameters", "expected 2", "got 1"});
}

TEST(GrowPlan, RefusesWhatDoesNotFitWithTheOldOnes) {
  ParameterSet set = parameters_of({std::int64_t{1} << 58});
  const Plan old = make_plan(set, {.ranks = 1});
  set.add("more", {std::int64_t{1} << 58});
  EXPECT_EQ(grow_plan(old, set, {.ranks = 1}).buffers().size(), 2u);
  set.add("too much", {1});
  expect_refused([&] { grow_plan(old, set, {.ranks = 1}); }, {"2^59"});
}

/// Adds a few parameters of all kinds.
void add_some(ParameterSet& set, std::mt19937& random) {
  const auto below = [&](unsigned count) { return random() % count; };
  constexpr std::int64_t sizes[] = {0, 1, 7, 64, 100, 300, 1000};
  for (auto left = below(8); left > 0; --left) {
    ParameterOptions options;
    options.dtype = below(2) == 0 ? DType::float32 : DType::bfloat16;
    options.chunk = static_cast<int>(below(2));
    options.frozen = below(5) == 0;
    const std::string name = "p" + std::to_string(set.size());
    if (set.size() > 0 && below(6) == 0) {
      const ParameterInfo& other =
          set[{static_cast<std::int64_t>(below(unsigned(set.size())))}];
      options = {.dtype = other.dtype,
                 .chunk = other.chunk,
                 .tied_to = other.name,
                 .frozen = other.frozen};
      set.add(name, other.extents, options);
    } else if (below(4) == 0) {
      add_external(set, name, sizes[below(7)], options);
    } else {
      set.add(name, {sizes[below(7)]}, options);
    }
  }
}

TEST(GrowPlan, OfRandomModelsKeepsWhatThereWas) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    PlanOptions options{.ranks = 1 + int(random() % 5),
                        .partition = static_cast<Partition>(random() % 3)};
    options.bucket_bytes = 1 + random() % 3000;
    options.divide =
        options.partition == Partition::buckets && random() % 2 == 0;
    ParameterSet set;
    add_some(set, random);
    Plan plan = make_plan(set, options);
    for (int round = 0; round < 3; ++round) {
      const Plan old = plan;
      const std::int64_t count = set.size();
      add_some(set, random);
      plan = grow_plan(old, set, options);
      expect_kept(plan, old, count);

      std::int64_t largest = 0;
      std::int64_t total = 0;
      for (std::int64_t i = 0; i < set.size(); ++i) {
        const ParameterInfo& info = set[{i}];
        ASSERT_EQ(plan.owner({i}), plan.owner(info.storage));
        if (info.frozen || info.storage.index != i) continue;
        total += info.size;
        if (i < count) largest = std::max(largest, info.size);
        ASSERT_LT(plan.placement({i}).bucket, plan.trained_buckets());
      }
      const auto loads = loads_of(plan);
      ASSERT_EQ(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}),
                total);
      if (options.partition == Partition::elements) continue;
      auto buckets = buckets_of(plan);
      buckets.erase(buckets.begin(), buckets.begin() + old.trained_buckets());
      for (const auto& [id, owner] :
           OwnerRules(set).owners_of(buckets, options, loads_of(old), largest))
        ASSERT_EQ(plan.owner(id), owner) << set[id].name;
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace kzero::test
