// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Values of the caller's memory as elements of a bucket, against the places
// that the plan gives them.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "storage/external_bucket.hpp"
#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"

namespace kzero::test {
namespace {

using detail::ExternalBucket;

constexpr float padding = -1.0f;

class ExternalBucketTest : public testing::Test {
 protected:
  ExternalBucketTest() {
    for (std::size_t p = 0; p < owns.size(); ++p) {
      owns[p].add_to(set, detail::concat("p", p));
      owns[p].value.fill([&](std::int64_t i) {
        return double(i % 1000) + 1000.0 * double(p);
      });
    }
    plan = make_plan(set, {.ranks = 2});
  }

  std::int64_t size() const { return plan.buckets()[0].range.size(); }

  /// What the bucket would hold.
  std::vector<float> expected() const {
    std::vector<float> bucket(static_cast<std::size_t>(size()), padding);
    for (std::size_t p = 0; p < owns.size(); ++p) {
      const Range range =
          plan.placement({static_cast<std::int64_t>(p)}).in_buffer;
      for (std::int64_t i = 0; i < range.size(); ++i)
        bucket[static_cast<std::size_t>(range.begin + i)] =
            static_cast<float>(owns[p].value.get(i));
    }
    return bucket;
  }

  std::vector<Range> ranges() const {
    return {{0, size()},
            {0, 0},
            {3, 4},
            {60, 70},
            {100, size() / 2},
            {size() / 2, size()},
            {size() - 1, size()}};
  }

  const std::vector<Own> owns = {
      {{5}, Order::gaps},        {{0, 3}, Order::left},
      {{17, 9}, Order::left},    {{}, Order::right},
      {{500, 401}, Order::left}, {{64}, Order::right},
      {{3, 50, 7}, Order::gaps}};
  ParameterSet set;
  Plan plan;
};

TEST_F(ExternalBucketTest, IsReadAsTheBucketIsLaidOut) {
  ASSERT_EQ(plan.buckets().size(), 1u);
  const ExternalBucket bucket{plan, set, 0};
  const std::vector<float> all = expected();
  for (const Range& range : ranges())
    for (const bool parallel : {false, true}) {
      std::vector<float> read(static_cast<std::size_t>(range.size()) + 1,
                              padding);
      if (parallel)
        read_values(ExecutionSpace(), bucket, range, read.data());
      else
        read_values(bucket, range, read.data());
      EXPECT_EQ(read.back(), padding);
      read.pop_back();
      EXPECT_TRUE(
          std::equal(read.begin(), read.end(), all.begin() + range.begin));
    }
}

TEST_F(ExternalBucketTest, IsWrittenLikewise) {
  const ExternalBucket bucket{plan, set, 0};
  float next = 0.0f;
  for (const Range& range : ranges())
    for (const bool parallel : {false, true}) {
      std::vector<float> all = expected();
      std::vector<float> given;
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        given.push_back(next++);
        float& place = all[static_cast<std::size_t>(i)];
        if (place != padding) place = given.back();
      }
      if (parallel)
        write_values(ExecutionSpace(), bucket, range, given.data());
      else
        write_values(bucket, range, given.data());
      EXPECT_EQ(expected(), all);
      for (const Own& own : owns) EXPECT_TRUE(own.gaps_are_whole());
    }
}

TEST_F(ExternalBucketTest, ArraysAreReadWhole) {
  for (const Own& own : owns) {
    std::vector<float> read(static_cast<std::size_t>(own.value.size()) + 1,
                            padding);
    detail::read_array(ExecutionSpace(), own.value.array(), read.data());
    EXPECT_EQ(read.back(), padding);
    for (std::int64_t i = 0; i < own.value.size(); ++i)
      ASSERT_EQ(read[static_cast<std::size_t>(i)], own.value.get(i));
  }
}

}  // namespace
}  // namespace kzero::test
