// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Parameters in the caller's own memory: what is kept, and what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <kzero/parameter_set.hpp>
#include <limits>
#include <utility>

#include "layout/layout_testing.hpp"

namespace kzero::test {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Memory that nobody looks into.
alignas(8) char memory[1 << 16];

ExternalArray at(std::int64_t byte, Numbers extents, Numbers strides = {},
                 DType dtype = DType::float32) {
  return {.data = memory + byte,
          .dtype = dtype,
          .extents = std::move(extents),
          .strides = std::move(strides)};
}

ExternalArray value(Numbers extents, Numbers strides = {},
                    DType dtype = DType::float32) {
  return at(0, std::move(extents), std::move(strides), dtype);
}

ExternalArray gradient(Numbers extents, Numbers strides = {},
                       DType dtype = DType::float32) {
  return at(1 << 15, std::move(extents), std::move(strides), dtype);
}

/// What a set keeps of a parameter that is its only one.
ParameterInfo alone(const ExternalArray& own, const ExternalArray& slope,
                    ParameterOptions options = {}) {
  ParameterSet set;
  return set[set.add("w", own, slope, std::move(options))];
}

TEST(ExternalParameters, AreKeptWithAllStrides) {
  ParameterSet set;
  const ParameterId plain = set.add("plain", {2, 3});
  const ParameterId own =
      set.add("own", value({3, 4, 5}), gradient({3, 4, 5}, {1, 3, 12}),
              {.group = "other", .chunk = 3});
  EXPECT_EQ(set[plain].external, nullptr);
  const ParameterInfo& info = set[own];
  EXPECT_EQ(info.extents, (Numbers{3, 4, 5}));
  EXPECT_EQ(info.size, 60);
  EXPECT_EQ(info.group, "other");
  EXPECT_EQ(info.chunk, 3);
  ASSERT_NE(info.external, nullptr);
  EXPECT_EQ(info.external->value.data, memory);
  EXPECT_EQ(info.external->value.strides, (Numbers{20, 5, 1}));
  EXPECT_EQ(info.external->gradient.data, memory + (1 << 15));
  EXPECT_EQ(info.external->gradient.strides, (Numbers{1, 3, 12}));
  EXPECT_TRUE(info.external->value.is_contiguous());
  EXPECT_FALSE(info.external->gradient.is_contiguous());
}

TEST(ExternalParameters, HaveTheTypesOfTheirMemory) {
  for (const DType type :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64})
    for (const DType slope :
         {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      const auto w = value({7}, {}, type);
      const auto g = gradient({7}, {}, slope);
      for (const ParameterOptions& options :
           {ParameterOptions(),
            ParameterOptions{.dtype = type, .gradient_dtype = slope}}) {
        const ParameterInfo info = alone(w, g, options);
        EXPECT_EQ(info.dtype, type);
        EXPECT_EQ(info.gradient_dtype, slope);
      }
    }
}

TEST(ExternalParameters, OfUnusualShapes) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(alone(value({}), gradient({})).size, 1);
  const Numbers eight = {1, 2, 1, 2, 1, 2, 1, 2};
  EXPECT_EQ(alone(value(eight), gradient(eight)).size, 16);
  // The stride of one index is not looked at.
  EXPECT_EQ(alone(value({1, 5}, {0, 2}), gradient({1, 5}, {-3, 1})).size, 5);

  ParameterSet set;
  const ExternalArray nothing{.extents = {5, 0}, .strides = {0, -1}};
  EXPECT_EQ(set[set.add("nothing", nothing, nothing)].size, 0);
  const ExternalArray none_of_many{.extents = {huge, huge, 0, huge}};
  EXPECT_EQ(set[set.add("none of many", none_of_many, none_of_many)].size, 0);
  EXPECT_EQ(set[set.add("none", value({0}), value({0}))].size, 0);
  set.add("w", value({1}), gradient({1}));
}

TEST(ExternalParameters, MayHaveAnyStridesThatShareNothing) {
  const std::pair<Numbers, Numbers> layouts[] = {
      {{4, 3}, {3, 1}},           // rows
      {{4, 3}, {1, 4}},           // columns
      {{4, 3}, {10, 1}},          // a part of longer rows
      {{4, 3}, {5, 2}},           // every other element of rows of 5
      {{2, 3, 4}, {1, 8, 2}},     // neither
      {{2, 2, 2}, {100, 1, 10}},  // far apart
  };
  for (const auto& layout : layouts) {
    const auto w = value(layout.first, layout.second);
    const auto g = gradient(layout.first, layout.second);
    EXPECT_EQ(alone(w, g).external->value.strides, layout.second);
  }
}

TEST(ExternalParameters, KeepTheirOwnersAlive) {
  const auto owner = std::make_shared<int>(0);
  {
    ExternalArray own = value({3});
    own.owner = owner;
    ExternalArray slope = gradient({3});
    slope.owner = owner;
    ParameterSet set;
    set.add("w", own, slope);
    own = slope = {};
    EXPECT_EQ(owner.use_count(), 3);
    const ParameterSet copy = set;
    EXPECT_EQ(copy[{0}].external, set[{0}].external);
    EXPECT_EQ(owner.use_count(), 3);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(ExternalParameters, FrozenOnesNeedNoGradient) {
  ParameterSet set;
  const auto a = set.add("a", value({4}), {.frozen = true});
  const auto b = set.add("b", at(64, {4}, {2}, DType::bfloat16),
                         gradient({4}, {}, DType::float32), {.frozen = true});
  for (const ParameterId id : {a, b}) {
    EXPECT_TRUE(set[id].frozen);
    EXPECT_EQ(set[id].gradient_dtype, DType::float32);
    EXPECT_EQ(set[id].external->gradient.data, nullptr);
  }
  expect_refused([&] { set.add("c", value({4})); },
                 {"\"c\"", "no gradient", "frozen"});
  expect_refused(
      [&] { set.add("c", value({4}), gradient({5}), {.frozen = true}); },
      {"\"c\"", "differ", "(4)", "(5)"});
}

TEST(ExternalParameters, SecondNamesShareTheMemory) {
  const ParameterOptions tied{.tied_to = "w"};
  ParameterSet set;
  set.add("w", value({4, 3}, {1, 4}), gradient({4, 3}));
  const auto by_extents = set.add("by extents", {4, 3}, tied);
  const auto by_memory = set.add("by memory", value({4, 3}, {1, 4}),
                                 gradient({4, 3}, {3, 1}), tied);
  for (const ParameterId id : {by_extents, by_memory}) {
    EXPECT_EQ(set[id].storage, ParameterId{0});
    EXPECT_EQ(set[id].external, set[{0}].external);
  }
  expect_refused(
      [&] {
        set.add("v", value({4, 3}), gradient({4, 3}), tied);
      },
      {"\"v\"", "\"w\"", "other memory", "same memory"});
  expect_refused(
      [&] {
        set.add("v", value({4, 3}, {1, 4}), at(1 << 14, {4, 3}), tied);
      },
      {"\"v\"", "\"w\"", "other memory"});
  set.add("plain", {4, 3});
  expect_refused(
      [&] {
        set.add("v", value({4, 3}), gradient({4, 3}), {.tied_to = "plain"});
      },
      {"\"v\"", "\"plain\"", "memory of the optimizer"});
  set.add("frozen", at(800, {3}), {.frozen = true});
  set.add("frozen too", at(800, {3}), {.tied_to = "frozen", .frozen = true});
  // Of another rank: this one's memory is its own.
  set.add("copy", at(900, {4}), at(940, {4}), {.tied_to = "elsewhere"});
}

TEST(ExternalParameters, DoNotShareTheirMemoryUnlessTied) {
  ParameterSet set;
  set.add("w", value({4}), gradient({4}));
  set.add("frozen", at(64, {4}), {.frozen = true});
  const auto refused = [&](ExternalArray own, ExternalArray slope,
                           const Lines& words) {
    expect_refused([&] { set.add("v", own, slope); }, words);
  };
  refused(value({2, 2}), at(512, {2, 2}),
          {"\"v\"", "the value", "memory of parameter \"w\"", "tie"});
  refused(at(512, {4}), gradient({4}),
          {"\"v\"", "the gradient", "memory of parameter \"w\""});
  refused(gradient({4}), at(512, {4}), {"the value", "\"w\""});
  refused(at(512, {4}), at(64, {4}), {"the gradient", "\"frozen\""});
  // None of them left anything behind.
  set.add("v", at(512, {4}), at(1024, {4}));
  ParameterSet other = set;
  expect_refused([&] { other.add("x", at(512, {4}), at(2048, {4})); },
                 {"\"x\"", "\"v\""});
}

TEST(ExternalParameters, FieldsOfOneArrayOfStructsDoNotOverlap) {
  const std::pair<ExternalArray, ExternalArray> right[] = {
      {at(0, {10}, {2}), at(4, {10}, {2})},
      {at(0, {5, 3}, {6, 2}), at(4, {5, 3}, {6, 2})},
      // struct { float w; double g; }
      {at(0, {10}, {4}), at(8, {10}, {2}, DType::float64)},
      // rows that take turns
      {at(0, {5, 3}, {6, 1}), at(12, {5, 3}, {6, 1})},
  };
  for (const auto& pair : right)
    EXPECT_NE(alone(pair.first, pair.second).external, nullptr);
  const std::pair<ExternalArray, ExternalArray> wrong[] = {
      {at(0, {10}), at(0, {10})},
      {at(0, {10}), at(36, {10})},
      {at(0, {10}, {2}), at(8, {10}, {2})},
      {at(0, {10}, {2}), at(72, {10}, {2})},
      {at(0, {5, 3}, {6, 1}), at(8, {5, 3}, {6, 1})},
      {at(0, {5, 3}, {6, 1}), at(20, {5, 3}, {6, 1})},
      {at(0, {10}, {4}), at(0, {10}, {2}, DType::float64)},
      // Not looked at closely: one lies between the ends of the other.
      {at(0, {10}, {10}), at(4, {10}, {1})},
  };
  for (const auto& pair : wrong)
    expect_refused([&] { alone(pair.first, pair.second); },
                   {"\"w\"", "share memory"});
}

TEST(ExternalParameters, RefuseWrongMemory) {
  ParameterSet set;
  const std::int64_t far = std::int64_t{1} << 60;
  using Call = std::function<void()>;
  const auto both = [&](ExternalArray own, ExternalArray slope,
                        ParameterOptions options = {}) {
    return [=, &set] { set.add("v", own, slope, options); };
  };
  const auto strided = [&](Numbers extents, Numbers strides) {
    return both(value(extents, strides), gradient(extents));
  };
  const ExternalArray null{.extents = {3}};
  const std::pair<Call, Lines> wrong[] = {
      {both(value({3}), gradient({4})), {"extents", "expected (3)", "got (4)"}},
      {both(value({2, 3}), gradient({3, 2})), {"extents", "(2, 3)", "(3, 2)"}},
      {both(value({1}), gradient({})), {"extents", "(1)", "()"}},
      {both(value(Numbers(9, 1)), gradient(Numbers(9, 1))),
       {"at most 8", "got 9"}},
      {both(value({-1}), gradient({-1})), {"negative extent", "(-1)"}},
      {both(value({far, far}), gradient({far, far})), {"2^62"}},
      {strided({2, 3}, {3}), {"value", "number of strides", "2", "got 1"}},
      {strided({3}, {3, 1}), {"value", "number of strides", "1", "got 2"}},
      {strided({4}, {-1}), {"value", "strides (-1)", "(4)", "positive"}},
      {strided({4, 2}, {0, 1}), {"value", "strides (0, 1)", "positive"}},
      {strided({4, 3}, {2, 1}), {"strides (2, 1)", "(4, 3)", "share memory"}},
      {strided({3, 3}, {1, 1}), {"strides (1, 1)", "share memory"}},
      {strided({2, 3, 4}, {6, 2, 1}), {"(6, 2, 1)", "share memory"}},
      {strided({2, 2}, {far, 1}), {"reach too far", "2^62"}},
      {strided({9}, {std::numeric_limits<std::int64_t>::max()}),
       {"reach too far", "2^62"}},
      {both(value({4}), gradient({4}, {0})), {"gradient", "strides (0)"}},
      {both(null, gradient({3})), {"value", "null", "3 elements"}},
      {both(value({3}), null), {"gradient", "null", "3 elements"}},
      {both(at(2, {3}), gradient({3})), {"value", "aligned", "multiple of 4"}},
      {both(value({3}), at((1 << 15) + 4, {3}, {}, DType::float64)),
       {"gradient", "aligned", "float64", "multiple of 8"}},
      {both(value({3}), gradient({3}), {.dtype = DType::bfloat16}),
       {"dtype", "bfloat16", "float32"}},
      {both(value({3}), gradient({3}), {.gradient_dtype = DType::float64}),
       {"gradient_dtype", "float64", "float32"}},
      {both(value({3}, {}, static_cast<DType>(9)), gradient({3})),
       {"number type", "got 9"}},
      {both(value({3}), gradient({3}, {}, static_cast<DType>(7))),
       {"number type", "got 7"}},
      {both(value({3}), gradient({3}), {.group = ""}), {"group"}},
  };
  for (const auto& [call, words] : wrong) {
    expect_refused(call, words);
    expect_refused(call, {"parameter \"v\": "});
  }
  expect_refused([&] { set.add("", value({3}), gradient({3})); },
                 {"parameter 0", "empty name"});
  EXPECT_EQ(set.size(), 0);
  set.add("v", value({3}), gradient({3}));
  expect_refused([&] { set.add("v", value({3}), gradient({3})); }, {"taken"});
}

}  // namespace
}  // namespace kzero::test
