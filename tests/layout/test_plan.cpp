// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/plan.hpp>
#include <utility>

#include "layout/layout_testing.hpp"

namespace kzero::test {
namespace {

TEST(Plan, SegmentsWithoutCap) {
  const Plan plan = plan_of({100, 70, 5}, 4);
  EXPECT_EQ(segments_of(plan, 0),
            (Lines{"p2 bucket 0: buffer [0, 5) bucket [0, 5) shard [0, 5) "
                   "parameter [0, 5)",
                   "p1 bucket 0: buffer [64, 128) bucket [64, 128) shard [64, "
                   "128) parameter [0, 64)"}));
  EXPECT_EQ(segments_of(plan, 1),
            (Lines{"p1 bucket 0: buffer [128, 134) bucket [128, 134) shard [0, "
                   "6) parameter [64, 70)",
                   "p0 bucket 0: buffer [192, 256) bucket [192, 256) shard "
                   "[64, 128) parameter [0, 64)"}));
  EXPECT_EQ(segments_of(plan, 2),
            (Lines{"p0 bucket 0: buffer [256, 292) bucket [256, 292) shard [0, "
                   "36) parameter [64, 100)"}));
  EXPECT_EQ(segments_of(plan, 3), Lines{});
}

TEST(Plan, SegmentsWithCap) {
  const Plan plan = plan_of({100, 70, 5}, 4, 240);
  EXPECT_EQ(segments_of(plan, 0),
            (Lines{"p2 bucket 0: buffer [0, 5) bucket [0, 5) shard [0, 5) "
                   "parameter [0, 5)",
                   "p0 bucket 1: buffer [256, 320) bucket [0, 64) shard [0, "
                   "64) parameter [0, 64)"}));
  EXPECT_EQ(segments_of(plan, 1),
            (Lines{"p1 bucket 0: buffer [64, 128) bucket [64, 128) shard [0, "
                   "64) parameter [0, 64)",
                   "p0 bucket 1: buffer [320, 356) bucket [64, 100) shard [0, "
                   "36) parameter [64, 100)"}));
  EXPECT_EQ(segments_of(plan, 2),
            (Lines{"p1 bucket 0: buffer [128, 134) bucket [128, 134) shard [0, "
                   "6) parameter [64, 70)"}));
  EXPECT_EQ(segments_of(plan, 3), Lines{});
}

TEST(Plan, ParametersWithoutElementsHaveNoSegments) {
  const Plan plan = plan_of({8, 0, 24}, 2);
  EXPECT_EQ(segments_of(plan, 0),
            (Lines{"p2 bucket 0: buffer [0, 24) bucket [0, 24) shard [0, 24) "
                   "parameter [0, 24)"}));
  EXPECT_EQ(segments_of(plan, 1),
            (Lines{"p0 bucket 0: buffer [64, 72) bucket [64, 72) shard [0, 8) "
                   "parameter [0, 8)"}));
  EXPECT_EQ(segments_of(plan_of({0, 0}, 2), 1), Lines{});
}

TEST(Plan, ManyRanksWithoutElements) {
  const Plan plan = plan_of({5}, 256);
  EXPECT_EQ(segments_of(plan, 0),
            (Lines{"p0 bucket 0: buffer [0, 5) bucket [0, 5) shard [0, 5) "
                   "parameter [0, 5)"}));
  for (int rank = 1; rank < 256; ++rank) {
    EXPECT_TRUE(plan.segments(rank).empty()) << rank;
    EXPECT_EQ(plan.shards(0).size(rank), 64) << rank;
  }
}

TEST(Plan, FewerParametersThanRanks) {
  const Plan plan = plan_of({1, 1, 1, 1, 1}, 8);
  EXPECT_EQ(plan.shards(0).total(), 512);
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_EQ(plan.segments(rank).size(), rank < 5 ? 1u : 0u) << rank;
}

TEST(Plan, TenThousandRanks) {
  const int ranks = 10'000;
  const std::int64_t size = 12'345'678;
  const Plan plan = plan_of({size, 1000}, ranks);
  // Padded from 1024 + size elements: 20 * 64 elements a shard.
  const std::int64_t shard = 1280;
  ASSERT_EQ(plan.shards(0).size(0), shard);
  EXPECT_EQ(plan.placement(ParameterId{0}).in_buffer.begin, 1024);
  std::int64_t next = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Segment& segment : plan.segments(rank)) {
      if (segment.parameter != ParameterId{0}) continue;
      ASSERT_EQ(segment.in_parameter.begin, next);
      ASSERT_EQ((1024 + next) / shard, rank);
      next = segment.in_parameter.end;
    }
  }
  EXPECT_EQ(next, size);
}

TEST(Plan, CountsPast32Bits) {
  const std::int64_t big = (std::int64_t{1} << 40) + 3;
  const Plan plan = plan_of({7, big, 5}, 2);
  const std::int64_t after = 64 + (big + 63) / 64 * 64;
  EXPECT_EQ(plan.placement(ParameterId{0}).in_buffer,
            (Range{after, after + 7}));
  const std::int64_t shard = plan.shards(0).size(0);
  EXPECT_EQ(shard * 2, (after + 7 + 127) / 128 * 128);

  const std::vector<Segment> segments = plan.segments(1);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].parameter, ParameterId{1});
  EXPECT_EQ(segments[0].in_parameter, (Range{shard - 64, big}));
  EXPECT_EQ(segments[0].in_shard, (Range{0, big + 64 - shard}));
  EXPECT_EQ(segments[1].parameter, ParameterId{0});
  EXPECT_EQ(segments[1].in_bucket, (Range{after, after + 7}));
  EXPECT_EQ(segments[1].in_shard, (Range{after - shard, after + 7 - shard}));
}

TEST(Plan, RefusesWhatItDoesNotHave) {
  const Plan plan = plan_of({1, 2}, 3);
  expect_refused([&] { plan.placement(ParameterId{}); }, {"below 2", "got -1"});
  expect_refused([&] { plan.placement(ParameterId{2}); }, {"below 2", "got 2"});
  expect_refused([&] { plan.shards(-1); }, {"bucket", "below 1", "got -1"});
  expect_refused([&] { plan.shards(1); }, {"bucket", "below 1", "got 1"});
  expect_refused([&] { plan.segments(-1); }, {"rank", "below 3", "got -1"});
  expect_refused([&] { plan.segments(3); }, {"rank", "below 3", "got 3"});
}

}  // namespace
}  // namespace kzero::test
