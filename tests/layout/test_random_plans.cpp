// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Random models against a layout that is worked out another way: buffer by
// buffer, and then element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <kzero/plan.hpp>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "layout/layout_testing.hpp"
#include "layout/owner_rules.hpp"

namespace kzero::test {
namespace {

struct Model {
  ParameterSet set;
  PlanOptions options;
  std::vector<ParameterId> order;  // what options.order means
};

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(engine_);
  }
  template <class T, std::size_t n>
  T pick(const T (&values)[n]) {
    return values[below(n)];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    std::shuffle(values.begin(), values.end(), engine_);
  }

 private:
  std::mt19937 engine_;
};

Model random_model(unsigned seed) {
  constexpr std::int64_t sizes[] = {0,  0,  1,  2,   3,   7,   31,
                                    63, 64, 65, 127, 128, 131, 509};
  constexpr DType types[] = {DType::float16, DType::bfloat16, DType::float32,
                             DType::float64};
  constexpr std::int64_t caps[] = {1,
                                   2,
                                   256,
                                   512,
                                   1000,
                                   2048,
                                   std::int64_t{1} << 20,
                                   PlanOptions::unlimited};
  Dice dice(seed);
  Model model;
  const std::int64_t count = dice.below(16);
  const std::int64_t variety = 1 + dice.below(4);  // of types
  const std::int64_t chunks = 1 + dice.below(3);
  for (std::int64_t i = 0; i < count; ++i) {
    ParameterOptions options;
    options.dtype = types[dice.below(variety)];
    if (dice.below(3) == 0) options.gradient_dtype = options.dtype;
    options.chunk = static_cast<int>(dice.below(chunks)) * 1000;
    const std::string name = "p" + std::to_string(i);
    const std::int64_t size = dice.pick(sizes);
    if (dice.below(4) == 0)
      add_external(model.set, name, size, options);
    else
      model.set.add(name, {size}, options);
    model.order.insert(model.order.begin(), ParameterId{i});
  }
  model.options.ranks = 1 + static_cast<int>(dice.below(7));
  model.options.bucket_bytes = dice.pick(caps);
  model.options.partition = static_cast<Partition>(dice.below(3));
  if (model.options.partition == Partition::buckets)
    model.options.divide = dice.below(2) == 0;
  if (dice.below(2) == 0) {
    dice.shuffle(model.order);
    model.options.order = model.order;
  }
  return model;
}

struct ExpectedBucket {
  std::vector<ParameterId> parameters;
  std::vector<Range> in_buffer;  // of each of them
  Range range;
  std::size_t last = 0;  // position of the last one in layout order
};

/// The buckets of one buffer, given its parameters in layout order.
std::vector<ExpectedBucket> cut(const Model& model,
                                const std::vector<ParameterId>& parameters) {
  std::vector<ExpectedBucket> buckets;
  std::int64_t start = 0;
  for (std::size_t first = 0; first < parameters.size();) {
    ExpectedBucket bucket;
    std::int64_t cursor = 0;  // in the bucket
    bool full = false;
    while (!full && first < parameters.size()) {
      const ParameterId id = parameters[first++];
      while (cursor % 64 != 0) ++cursor;
      const std::int64_t end = cursor + model.set[id].size;
      bucket.parameters.push_back(id);
      bucket.in_buffer.push_back({start + cursor, start + end});
      full = end * size_of(model.set[id].gradient_dtype) >=
             model.options.bucket_bytes;
      cursor = end;
    }
    const bool equal = model.options.partition == Partition::elements;
    while (cursor % (equal ? 64 * model.options.ranks : 64) != 0) ++cursor;
    bucket.range = {start, start + cursor};
    bucket.last = static_cast<std::size_t>(
        std::ranges::find(model.order, bucket.parameters.back()) -
        model.order.begin());
    start += cursor;
    buckets.push_back(bucket);
  }
  return buckets;
}

using Key = std::tuple<DType, DType, int, bool>;

Key key_of(const ParameterInfo& parameter) {
  return {parameter.dtype, parameter.gradient_dtype, parameter.chunk,
          parameter.external != nullptr};
}

/// Those of rank 0 come first in their bucket, then those of rank 1.
void order_by_owner(const Model& model, std::vector<ExpectedBucket>& buckets,
                    std::map<Key, std::vector<ParameterId>>& buffers) {
  std::vector<Thing> things;
  for (const ExpectedBucket& bucket : buckets)
    things.push_back(bucket.parameters);
  const Owners owners = OwnerRules(model.set).owners_of(
      things, model.options,
      std::vector<std::int64_t>(std::size_t(model.options.ranks)));
  for (auto& [key, parameters] : buffers) parameters.clear();
  for (ExpectedBucket& bucket : buckets) {
    Thing ordered;
    for (int rank = 0; rank < model.options.ranks; ++rank)
      for (const ParameterId id : bucket.parameters)
        if (owners.at(id) == rank) ordered.push_back(id);
    bucket.parameters = ordered;
    bucket.in_buffer.clear();
    std::int64_t cursor = bucket.range.begin;
    for (const ParameterId id : ordered) {
      while (cursor % 64 != 0) ++cursor;
      bucket.in_buffer.push_back({cursor, cursor + model.set[id].size});
      cursor += model.set[id].size;
      buffers[key_of(model.set[id])].push_back(id);
    }
  }
}

void expect_layout(const Model& model, const Plan& plan) {
  std::map<Key, std::vector<ParameterId>> buffers;
  for (const ParameterId id : model.order)
    buffers[key_of(model.set[id])].push_back(id);
  std::vector<ExpectedBucket> expected;
  for (const auto& [key, parameters] : buffers)
    for (const ExpectedBucket& bucket : cut(model, parameters))
      expected.push_back(bucket);
  std::ranges::sort(expected, {}, &ExpectedBucket::last);
  if (model.options.partition != Partition::elements)
    order_by_owner(model, expected, buffers);

  ASSERT_EQ(plan.buffers().size(), buffers.size());
  for (const Buffer& buffer : plan.buffers()) {
    const Key key{buffer.dtype, buffer.gradient_dtype, buffer.chunk,
                  buffer.external};
    ASSERT_EQ(buffer.parameters, buffers[key]);
  }
  ASSERT_EQ(plan.buckets().size(), expected.size());
  for (std::size_t b = 0; b < expected.size(); ++b) {
    const Bucket& bucket = plan.buckets()[b];
    ASSERT_EQ(bucket.range, expected[b].range) << b;
    ASSERT_EQ(bucket.parameters.size(), std::ssize(expected[b].parameters));
    for (std::size_t p = 0; p < expected[b].parameters.size(); ++p) {
      const ParameterId id = expected[b].parameters[p];
      const Placement& placement = plan.placement(id);
      const Buffer& buffer =
          plan.buffers()[static_cast<std::size_t>(placement.buffer)];
      const auto place = static_cast<std::size_t>(bucket.parameters.begin) + p;
      ASSERT_EQ(buffer.parameters[place], id);
      ASSERT_EQ(placement.buffer, bucket.buffer);
      ASSERT_EQ(placement.bucket, static_cast<std::int64_t>(b));
      ASSERT_EQ(placement.in_buffer, expected[b].in_buffer[p]);
    }
  }
}

/// Shards are equal, aligned, and together are the bucket; buckets follow one
/// another and together are the buffer.
void expect_cuts(const Plan& plan) {
  std::vector<std::int64_t> ends(plan.buffers().size(), 0);
  for (std::int64_t b = 0; b < std::ssize(plan.buckets()); ++b) {
    const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(b)];
    auto& end = ends[static_cast<std::size_t>(bucket.buffer)];
    ASSERT_EQ(bucket.range.begin, end);
    end = bucket.range.end;
    const ShardTable shards = plan.shards(b);
    ASSERT_EQ(shards.ranks(), plan.ranks());
    ASSERT_EQ(shards.total(), bucket.range.size());
    std::int64_t next = 0;
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      ASSERT_EQ(shards.range(rank).begin, next);
      if (plan.partition() == Partition::elements) {
        ASSERT_EQ(shards.size(rank), shards.size(0));
      }
      ASSERT_EQ(shards.size(rank) % 64, 0);
      next = shards.range(rank).end;
    }
  }
  for (std::size_t b = 0; b < ends.size(); ++b)
    ASSERT_EQ(ends[b], plan.buffers()[b].size);
}

/// Follows each element of each segment through its four ranges.
void expect_ownership(const Model& model, const Plan& plan) {
  const std::pair<std::int64_t, std::int64_t> padding{-1, -1};
  // Which element of which parameter lies at each place of each buffer.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> content;
  std::vector<std::vector<int>> owner;
  for (const Buffer& buffer : plan.buffers()) {
    content.emplace_back(static_cast<std::size_t>(buffer.size), padding);
    owner.emplace_back(static_cast<std::size_t>(buffer.size), -1);
  }
  for (const ParameterId id : model.order) {
    const Placement& placement = plan.placement(id);
    ASSERT_EQ(placement.in_buffer.begin % 64, 0);
    ASSERT_EQ(placement.in_buffer.size(), model.set[id].size);
    for (std::int64_t i = 0; i < model.set[id].size; ++i) {
      auto& cell =
          content[static_cast<std::size_t>(placement.buffer)]
                 [static_cast<std::size_t>(placement.in_buffer.begin + i)];
      ASSERT_EQ(cell, padding) << "two parameters overlap";
      cell = {id.index, i};
    }
  }
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    std::pair<std::int64_t, std::int64_t> before{-1, -1};  // bucket, place
    for (const Segment& segment : plan.segments(rank)) {
      ASSERT_FALSE(segment.in_buffer.empty());
      ASSERT_EQ(segment.in_bucket.size(), segment.in_buffer.size());
      ASSERT_EQ(segment.in_shard.size(), segment.in_buffer.size());
      ASSERT_EQ(segment.in_parameter.size(), segment.in_buffer.size());
      ASSERT_EQ(segment.bucket, plan.placement(segment.parameter).bucket);
      const std::pair here{segment.bucket, segment.in_buffer.begin};
      ASSERT_LT(before, here) << "not in order";
      before = here;
      const Bucket& bucket =
          plan.buckets()[static_cast<std::size_t>(segment.bucket)];
      const Range shard = plan.shards(segment.bucket).range(rank);
      if (const auto owner_of = plan.owner(segment.parameter)) {
        ASSERT_EQ(owner_of, rank);
      }
      const auto b = static_cast<std::size_t>(bucket.buffer);
      for (std::int64_t i = 0; i < segment.in_buffer.size(); ++i) {
        const std::int64_t at = segment.in_buffer.begin + i;
        const std::int64_t in_bucket = at - bucket.range.begin;
        ASSERT_EQ(segment.in_bucket.begin + i, in_bucket);
        ASSERT_LT(in_bucket, shard.end);
        ASSERT_GE(in_bucket, shard.begin);
        ASSERT_EQ(segment.in_shard.begin + i, in_bucket - shard.begin);
        ASSERT_EQ(
            content[b][static_cast<std::size_t>(at)],
            std::pair(segment.parameter.index, segment.in_parameter.begin + i));
        int& by = owner[b][static_cast<std::size_t>(at)];
        ASSERT_EQ(by, -1) << "owned twice";
        by = rank;
      }
    }
  }
  for (std::size_t b = 0; b < content.size(); ++b)
    for (std::size_t i = 0; i < content[b].size(); ++i)
      ASSERT_EQ(owner[b][i] == -1, content[b][i] == padding) << i;
}

TEST(RandomPlans, AreLaidOutByTheRules) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = random_model(seed);
    expect_layout(model, make_plan(model.set, model.options));
    if (HasFatalFailure()) return;
  }
}

TEST(RandomPlans, AreCutIntoAlignedShards) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = random_model(seed);
    expect_cuts(make_plan(model.set, model.options));
    if (HasFatalFailure()) return;
  }
}

TEST(RandomPlans, EveryElementHasOneOwner) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = random_model(seed);
    expect_ownership(model, make_plan(model.set, model.options));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace kzero::test
