// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Wrong declarations of parameters, and plans that cannot be made.
#include <gtest/gtest.h>

#include <kzero/kzero.hpp>
#include <limits>
#include <type_traits>

#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

template <class Enum>
Enum code(int value) {
  return static_cast<Enum>(value);
}

/// "w", and "later", which must not be declared any more.
ParameterSet declared() {
  ParameterSet set;
  set.add("w", {2, 3});
  set.add("early", {1}, {.tied_to = "later"});
  return set;
}

/// A parameter "v" of "w"'s shape that is the same as "w", but for the options.
WrongCall tied(const char* what, ParameterOptions options,
               std::vector<std::string> says) {
  options.tied_to = "w";
  says.insert(says.end(), {"\"v\"", "\"w\"", what});
  return {what, [=] { declared().add("v", {2, 3}, options); }, says};
}

TEST(WrongCalls, OfParameterSet) {
  ParameterSet set = declared();
  const auto v = [&](std::vector<std::int64_t> extents,
                     ParameterOptions options = {}) {
    return [=, &set] { set.add("v", extents, options); };
  };
  const std::int64_t big = std::int64_t{1} << 62;
  const WrongCalls rows = {
      {"no name", [&] { set.add("", {1}); }, {"parameter 2", "empty name"}},
      {"a name that is taken",
       [&] { set.add("w", {1}); },
       {"\"w\"", "taken", "parameter 0", "(2, 3)"}},
      {"nine extents",
       v(std::vector<std::int64_t>(9, 1)),
       {"\"v\"", "at most 8", "got 9"}},
      {"a negative extent", v({2, -1}), {"\"v\"", "got (2, -1)"}},
      {"the lowest extent", v({lowest}), {"\"v\"", "-9223372036854775808"}},
      {"a negative extent beside 0", v({0, -5}), {"\"v\"", "got (0, -5)"}},
      {"too large", v({big}), {"\"v\"", "2^62", "(4611686018427387904)"}},
      {"too large when multiplied",
       v({std::int64_t{1} << 32, std::int64_t{1} << 32}),
       {"\"v\"", "2^62", "(4294967296, 4294967296)"}},
      {"unknown type", v({1}, {.dtype = code<DType>(9)}), {"\"v\"", "got 9"}},
      {"unknown gradient type",
       v({1}, {.gradient_dtype = code<DType>(200)}),
       {"\"v\"", "number type", "got 200"}},
      {"no group", v({1}, {.group = ""}), {"\"v\"", "group", "got \"\""}},
      {"negative chunk", v({1}, {.chunk = -7}), {"\"v\"", "chunk", "got -7"}},
      {"unknown ModelParallel",
       v({1}, {.model_parallel = code<ModelParallel>(7)}),
       {"\"v\"", "ModelParallel", "got 7"}},
      {"negative ModelParallel",
       v({1}, {.model_parallel = code<ModelParallel>(-1)}),
       {"\"v\"", "ModelParallel", "got -1"}},
      {"unknown Unmarked",
       v({1}, {.unmarked = code<Unmarked>(5)}),
       {"\"v\"", "Unmarked", "got 5"}},
      {"negative Unmarked",
       v({1}, {.unmarked = code<Unmarked>(-2)}),
       {"\"v\"", "Unmarked", "got -2"}},
      {"tied to itself", v({1}, {.tied_to = "v"}), {"\"v\"", "tied to itself"}},
      {"declared after what is tied to it",
       [&] { set.add("later", {1}); },
       {"\"later\"", "\"early\"", "declare it first"}},
      {"tied, other extents",
       v({3, 2}, {.tied_to = "w"}),
       {"\"v\"", "\"w\"", "extents", "expected (2, 3)", "got (3, 2)"}},
      tied("type", {.dtype = DType::float64},
           {"expected float32", "got float64"}),
      tied("gradient type", {.gradient_dtype = DType::bfloat16},
           {"expected float32", "got bfloat16"}),
      tied("group", {.group = "other"}, {"\"default\"", "got \"other\""}),
      tied("chunk", {.chunk = 3}, {"expected 0", "got 3"}),
      tied("model_parallel", {.model_parallel = ModelParallel::split},
           {"expected 0", "got 1"}),
      tied("unmarked", {.unmarked = Unmarked::keep}, {"expected 0", "got 1"}),
      tied("frozen", {.frozen = true}, {"expected 0", "got 1"}),
      {"an id of none", [&] { set[ParameterId{}]; }, {"parameter", "got -1"}},
      {"an id past the end", [&] { set[{2}]; }, {"below 2", "got 2"}},
      {"the lowest id", [&] { set[{lowest}]; }, {"got -9223372036854775808"}},
      {"the highest id", [&] { set[{highest}]; }, {"got 9223372036854775807"}},
      {"an id of an empty set",
       [] { static_cast<void>(ParameterSet()[{0}]); },
       {"below 0", "got 0"}},
  };
  expect_refused(rows, [&] {
    EXPECT_EQ(set.size(), 2);
    EXPECT_EQ(set.find("v"), std::nullopt);
    EXPECT_EQ(set.find("later"), std::nullopt);
  });
  set.add("v", {1});
}

TEST(WrongCalls, OfMakePlanAndPlan) {
  ParameterSet set;
  set.add("a", {100});
  set.add("b", {7});
  const auto with = [&](PlanOptions options) {
    return [=, &set] { make_plan(set, options); };
  };
  const auto ordered = [&](std::vector<ParameterId> order) {
    return with({.ranks = 2, .order = std::move(order)});
  };
  ParameterSet large;
  large.add("large", {(std::int64_t{1} << 59) - 10});
  ParameterSet many;
  for (const char* name : {"first", "second", "third"})
    many.add(name, {std::int64_t{1} << 58});
  const Plan plan = make_plan(set, {.ranks = 3});
  const WrongCalls rows = {
      {"no ranks", with({}), {"PlanOptions::ranks", "got 0"}},
      {"negative ranks", with({.ranks = -3}), {"PlanOptions::ranks", "got -3"}},
      {"no bucket_bytes",
       with({.ranks = 1, .bucket_bytes = 0}),
       {"PlanOptions::bucket_bytes", "got 0"}},
      {"negative bucket_bytes",
       with({.ranks = 1, .bucket_bytes = lowest}),
       {"PlanOptions::bucket_bytes", "got -9223372036854775808"}},
      {"unknown partition",
       with({.ranks = 1, .partition = code<Partition>(4)}),
       {"PlanOptions::partition", "code 4"}},
      {"divide with whole parameters",
       with({.ranks = 2, .partition = Partition::parameters, .divide = true}),
       {"PlanOptions::divide", "Partition::buckets", "code 1"}},
      {"too short an order",
       ordered({{0}}),
       {"PlanOptions::order", "expected 2", "got 1"}},
      {"too long an order",
       ordered({{0}, {1}, {0}}),
       {"PlanOptions::order", "expected 2", "got 3"}},
      {"an order that names one twice",
       ordered({{1}, {1}}),
       {"PlanOptions::order", "twice", "at 1", "\"b\""}},
      {"an order with an id past the end",
       ordered({{0}, {2}}),
       {"PlanOptions::order", "at 1", "below 2", "got 2"}},
      {"an order with an id of none",
       ordered({{}, {0}}),
       {"PlanOptions::order", "at 0", "got -1"}},
      {"padding that does not fit",
       [&] { make_plan(large, {.ranks = 1'000'000}); },
       {"\"large\"", "2^59"}},
      {"parameters that do not fit together",
       [&] { make_plan(many, {.ranks = 1}); },
       {"\"first\"", "2^59", "288230376151711744"}},
      {"placement of none",
       [&] { static_cast<void>(plan.placement({})); },
       {"plan", "got -1"}},
      {"placement past the end",
       [&] { static_cast<void>(plan.placement({2})); },
       {"below 2", "got 2"}},
      {"shards of bucket -1",
       [&] { static_cast<void>(plan.shards(-1)); },
       {"bucket", "got -1"}},
      {"shards of a bucket past the end",
       [&] { static_cast<void>(plan.shards(1)); },
       {"bucket", "below 1", "got 1"}},
      {"segments of rank -1",
       [&] { static_cast<void>(plan.segments(-1)); },
       {"rank", "below 3", "got -1"}},
      {"segments of a rank past the end",
       [&] { static_cast<void>(plan.segments(3)); },
       {"rank", "below 3", "got 3"}},
      {"placement in a plan of nothing",
       [] { static_cast<void>(Plan().placement({0})); },
       {"below 0", "got 0"}},
      {"shards in a plan of nothing",
       [] { static_cast<void>(Plan().shards(0)); },
       {"below 0", "got 0"}},
  };
  expect_refused(rows);
}

TEST(WrongCalls, OfTypes) {
  const auto visit = [](DType dtype) {
    visit_dtype(dtype, [](auto type) {
      static_cast<void>(type);
      ADD_FAILURE() << "called";
    });
  };
  const WrongCalls rows = {
      {"visit_dtype of 4",
       [&] { visit(code<DType>(4)); },
       {"number type", "got 4"}},
      {"visit_dtype of 255",
       [&] { visit(code<DType>(255)); },
       {"number type", "got 255"}},
  };
  expect_refused(rows);
}

}  // namespace
}  // namespace kzero::test
