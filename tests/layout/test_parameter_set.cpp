// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <functional>
#include <kzero/parameter_set.hpp>
#include <utility>

#include "layout/layout_testing.hpp"

namespace kzero::test {
namespace {

TEST(ParameterSet, StartsEmpty) {
  const ParameterSet set;
  EXPECT_EQ(set.size(), 0);
  EXPECT_TRUE(set.parameters().empty());
  EXPECT_EQ(set.find("w"), std::nullopt);
}

TEST(ParameterSet, KeepsWhatWasDeclared) {
  ParameterSet set;
  const ParameterId w = set.add("layer/w", {3, 4, 5});
  const ParameterId b = set.add("layer/b", {7},
                                {.dtype = DType::bfloat16,
                                 .gradient_dtype = DType::bfloat16,
                                 .group = "no decay",
                                 .chunk = 2});

  EXPECT_EQ(w.index, 0);
  EXPECT_EQ(b.index, 1);
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set[w].name, "layer/w");
  EXPECT_EQ(set[w].extents, (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(set[w].size, 60);
  EXPECT_EQ(set[w].dtype, DType::float32);
  EXPECT_EQ(set[w].gradient_dtype, DType::float32);
  EXPECT_EQ(set[w].group, "default");
  EXPECT_EQ(set[w].chunk, 0);
  EXPECT_EQ(set[b].dtype, DType::bfloat16);
  EXPECT_EQ(set[b].gradient_dtype, DType::bfloat16);
  EXPECT_EQ(set[b].group, "no decay");
  EXPECT_EQ(set[b].chunk, 2);
  EXPECT_EQ(set.parameters()[1].name, "layer/b");
  EXPECT_EQ(set.find("layer/b"), b);
  EXPECT_EQ(set.find("layer"), std::nullopt);
}

TEST(ParameterSet, SizesOfUnusualShapes) {
  ParameterSet set;
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(set[set.add("scalar", {})].size, 1);
  EXPECT_EQ(set[set.add("none", {0})].size, 0);
  EXPECT_EQ(set[set.add("none of many", {huge, huge, 0, huge})].size, 0);
  EXPECT_EQ(set[set.add("eight", {1, 2, 1, 2, 1, 2, 1, 2})].size, 16);
}

TEST(ParameterSet, DefaultGradientTypes) {
  ParameterSet set;
  const auto gradient = [&](std::string name, DType dtype) {
    return set[set.add(std::move(name), {1}, {.dtype = dtype})].gradient_dtype;
  };
  EXPECT_EQ(gradient("a", DType::float16), DType::float32);
  EXPECT_EQ(gradient("b", DType::bfloat16), DType::float32);
  EXPECT_EQ(gradient("c", DType::float32), DType::float32);
  EXPECT_EQ(gradient("d", DType::float64), DType::float64);
}

TEST(ParameterSet, AnyGradientTypeGoesWithAnyType) {
  const DType all[] = {DType::float16, DType::bfloat16, DType::float32,
                       DType::float64};
  for (const DType dtype : all) {
    for (const DType gradient : all) {
      ParameterSet set;
      set.add("w", {1}, {.dtype = dtype, .gradient_dtype = gradient});
      EXPECT_EQ(set[ParameterId{0}].gradient_dtype, gradient);
    }
  }
}

TEST(ParameterSet, NamesAreAnyBytes) {
  ParameterSet set;
  const std::string names[] = {" ",
                               "/",
                               "a\nb",
                               std::string("\0", 1),
                               std::string("\0\0", 2),
                               std::string(300, 'x'),
                               "caf\xc3\xa9",
                               "\xff"};
  for (const std::string& name : names) {
    const ParameterId id = set.add(name, {1});
    EXPECT_EQ(set[id].name, name);
    EXPECT_EQ(set.find(name), id);
  }
  EXPECT_EQ(set.size(), 8);
}

TEST(ParameterSet, FindsEveryOneOfMany) {
  ParameterSet set;
  const std::int64_t count = 100'000;
  for (std::int64_t i = 0; i < count; ++i)
    set.add("p" + std::to_string(i), {i});
  for (std::int64_t i = 0; i < count; ++i)
    ASSERT_EQ(set.find("p" + std::to_string(i)), ParameterId{i});
  EXPECT_EQ(set.find("p100000"), std::nullopt);
  expect_refused([&] { set.add("p77777", {1}); }, {"\"p77777\"", "taken"});
}

TEST(ParameterSet, CopiesAreIndependent) {
  ParameterSet set = parameters_of({1, 2});
  ParameterSet copy = set;
  copy.add("more", {3});
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.find("more"), std::nullopt);
  EXPECT_EQ(copy.find("p1"), ParameterId{1});

  const ParameterSet moved = std::move(copy);
  EXPECT_EQ(moved.size(), 3);
  EXPECT_EQ(moved.find("more"), ParameterId{2});
}

TEST(ParameterSet, SizesUpTo2To62Bytes) {
  const std::int64_t one = 1;
  const auto add = [](std::vector<std::int64_t> extents, DType dtype) {
    ParameterSet set;
    return set[set.add("big", std::move(extents), {.dtype = dtype})].size;
  };
  EXPECT_EQ(add({one << 60}, DType::float32), one << 60);
  EXPECT_EQ(add({one << 30, one << 31}, DType::bfloat16), one << 61);
  EXPECT_EQ(add({one << 59}, DType::float64), one << 59);

  const Lines words = {"\"big\"", "2^62"};
  const std::pair<std::vector<std::int64_t>, DType> wrong[] = {
      {{(one << 60) + 1}, DType::float32},
      {{(one << 61) + 1}, DType::bfloat16},
      {{(one << 59) + 1}, DType::float64},
      {{one << 32, one << 32}, DType::float32},  // 2^64: 0 when it wraps
      {{one << 33, one << 31, 3}, DType::float16},
      {{3, (one << 62) / 3 + 1, 3}, DType::float32},
      {std::vector<std::int64_t>(8, one << 40), DType::float32}};
  for (const auto& big : wrong)
    expect_refused([&] { add(big.first, big.second); }, words);
}

TEST(ParameterSet, RefusesWrongDeclarations) {
  ParameterSet set;
  set.add("w", {2, 3});
  using Call = std::function<void()>;
  const std::pair<Call, Lines> wrong[] = {
      {[&] { set.add("", {1}); }, {"parameter 1", "empty name"}},
      {[&] { set.add("w", {1}); }, {"\"w\"", "taken", "(2, 3)"}},
      {[&] { set.add("v", std::vector<std::int64_t>(9, 1)); },
       {"\"v\"", "at most 8", "got 9"}},
      {[&] {
         set.add("v", {2, -1});
       },
       {"\"v\"", "negative", "(2, -1)"}},
      {[&] {
         set.add("v", {0, -1});
       },
       {"\"v\"", "negative", "(0, -1)"}},
      {[&] { set.add("v", {1}, {.group = ""}); }, {"\"v\"", "group"}},
      {[&] { set.add("v", {1}, {.chunk = -1}); }, {"\"v\"", "chunk", "-1"}},
      {[&] { set.add("v", {1}, {.dtype = static_cast<DType>(9)}); },
       {"\"v\"", "number type", "9"}},
      {[&] { set.add("v", {1}, {.gradient_dtype = static_cast<DType>(7)}); },
       {"\"v\"", "number type", "7"}}};
  for (const auto& [call, words] : wrong) expect_refused(call, words);

  // None of them left anything behind.
  EXPECT_EQ(set.size(), 1);
  EXPECT_EQ(set.find("v"), std::nullopt);
  EXPECT_EQ(set.add("v", {1}).index, 1);
}

TEST(ParameterSet, AppendsAnotherSetAsItIs) {
  ParameterSet set = parameters_of({1, 2});
  ParameterSet more;
  more.add("w", {2, 3},
           {.dtype = DType::bfloat16,
            .gradient_dtype = DType::bfloat16,
            .group = "other",
            .chunk = 4,
            .model_parallel = ModelParallel::split,
            .tied_to = "elsewhere",
            .unmarked = Unmarked::keep});
  more.add("frozen", {5}, {.frozen = true});

  EXPECT_EQ(set.append(more), (std::vector<ParameterId>{{2}, {3}}));

  ASSERT_EQ(set.size(), 4);
  EXPECT_EQ(set.find("frozen"), ParameterId{3});
  const ParameterInfo& w = set[{2}];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.extents, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(w.size, 6);
  EXPECT_EQ(w.dtype, DType::bfloat16);
  EXPECT_EQ(w.gradient_dtype, DType::bfloat16);
  EXPECT_EQ(w.group, "other");
  EXPECT_EQ(w.chunk, 4);
  EXPECT_EQ(w.model_parallel, ModelParallel::split);
  EXPECT_EQ(w.tied_to, "elsewhere");
  EXPECT_EQ(w.unmarked, Unmarked::keep);
  EXPECT_EQ(w.storage, ParameterId{2});
  EXPECT_TRUE(set[{3}].frozen);
  EXPECT_TRUE(set.append(ParameterSet()).empty());
}

TEST(ParameterSet, AppendsTiesOfBothSetsTogether) {
  ParameterSet set = parameters_of({7, 9});
  ParameterSet more;
  more.add("own", {4});
  more.add("to own", {4}, {.tied_to = "own"});
  more.add("to p1", {9}, {.tied_to = "p1"});  // not in this one
  set.append(more);
  EXPECT_EQ(set[{2}].storage, ParameterId{2});
  EXPECT_EQ(set[{3}].storage, ParameterId{2});
  EXPECT_EQ(set[{4}].storage, ParameterId{1});
}

TEST(ParameterSet, AppendsAllOrNothing) {
  ParameterSet set = parameters_of({7});
  add_external(set, "mine", 3, {});
  set.add("to later", {5}, {.tied_to = "later"});
  const auto refused = [&](auto&& add, const Lines& words) {
    ParameterSet more;
    more.add("first", {1});
    add(more);
    more.add("last", {1});
    expect_refused([&] { set.append(more); }, words);
    EXPECT_EQ(set.size(), 3);
    for (const char* name : {"first", "last"})
      EXPECT_EQ(set.find(name), std::nullopt);
  };
  refused([](auto& more) { more.add("p0", {1}); }, {"\"p0\"", "taken"});
  refused([](auto& more) { more.add("v", {8}, {.tied_to = "p0"}); },
          {"\"v\"", "extents"});
  refused([](auto& more) { more.add("later", {5}); },
          {"\"later\"", "declare it first"});
  // The second parameter of each set lies at the same place.
  refused([](auto& more) { add_external(more, "theirs", 3, {}); },
          {"\"theirs\"", "\"mine\""});
  expect_refused([&] { set.append(set); }, {"\"p0\"", "taken"});

  ParameterSet right;
  right.add("first", {1});
  right.add("to mine", {3}, {.tied_to = "mine"});
  EXPECT_EQ(set.append(right), (std::vector<ParameterId>{{3}, {4}}));
  EXPECT_EQ(set[{4}].external, set[{1}].external);
}

TEST(ParameterSet, AppendedMemoryIsTaken) {
  ParameterSet set;
  ParameterSet more;
  add_external(more, "theirs", 3, {});
  set.append(more);
  EXPECT_EQ(set[{0}].external, more[{0}].external);
  expect_refused([&] { set.append(more); }, {"\"theirs\"", "taken"});
  ParameterSet again;
  add_external(again, "again", 3, {});
  expect_refused([&] { set.append(again); }, {"\"again\"", "\"theirs\""});
}

TEST(ParameterSet, RefusesUnknownIds) {
  const ParameterSet set = parameters_of({1, 2});
  expect_refused([&] { set[ParameterId{}]; }, {"below 2", "got -1"});
  expect_refused([&] { set[ParameterId{2}]; }, {"below 2", "got 2"});
}

}  // namespace
}  // namespace kzero::test
