// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <string>

#include "io/checkpoint_error.hpp"
#include "io/layout_match.hpp"

using namespace kzero;
using namespace kzero::detail;
using namespace kzero::test;

namespace {

FileLayout model() {
  FileLayout layout;
  layout.groups = {{"default", "adamw", {{"beta1", 0.9}, {"epsilon", 1e-8}}}};
  for (const char* name : {"a", "b", "c", "d", "e", "f"})
    layout.parameters.push_back({name,
                                 "default",
                                 0,
                                 {2, 3},
                                 {{"value", DType::bfloat16},
                                  {"main", DType::float32},
                                  {"exp_avg", DType::float32}}});
  return layout;
}

template <class F>
std::string problem(F&& change, const LoadOptions& options = {}) {
  FileLayout file = model();
  change(file);
  return checkpoint_error([&] { match_layouts(model(), file, options); });
}

TEST(LayoutMatch, AcceptsOtherOrdersAndValues) {
  EXPECT_EQ(problem([](FileLayout& file) {
              std::swap(file.parameters[0], file.parameters[5]);
              std::swap(file.parameters[1].arrays[1],
                        file.parameters[1].arrays[2]);
              file.groups[0].hyperparameters = {{"epsilon", 1.}, {"beta1", 0.}};
            }),
            no_error);
}

TEST(LayoutMatch, NamesMissingAndUnexpectedParameters) {
  const std::string text = problem([](FileLayout& file) {
    file.parameters.erase(file.parameters.begin());
    file.parameters[2].name = "new/name";
  });
  EXPECT_TRUE(says(text, {"parameters missing in the file: \"a\", \"d\"",
                          "that the model does not have: \"new/name\""}));
  EXPECT_EQ(text.find("\"b\""), std::string::npos);
}

TEST(LayoutMatch, NamesTheFirstFewOnly) {
  const std::string text =
      problem([](FileLayout& file) { file.parameters.clear(); });
  EXPECT_TRUE(says(text, {"\"a\", \"b\", \"c\", \"d\" and 2 more"}));
}

TEST(LayoutMatch, SaysWhatDiffers) {
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.parameters[1].extents = {3, 2};
                   }),
                   {"\"b\" has the shape (3, 2), expected (2, 3)"}));
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.parameters[1].arrays[0].dtype = DType::float16;
                   }),
                   {"\"b\" is float16, expected bfloat16"}));
  EXPECT_TRUE(says(
      problem([](FileLayout& file) { file.parameters[1].group = "other"; }),
      {"\"b\" is in the group \"other\", expected \"default\""}));
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.parameters[1].arrays[2].name = "momentum_buffer";
                   }),
                   {"\"b\"", "arrays missing in the file: \"exp_avg\"",
                    "\"momentum_buffer\""}));
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.parameters[1].arrays[2].dtype = DType::float64;
                   }),
                   {"\"b\"", "\"exp_avg\" is float64, expected float32"}));
}

TEST(LayoutMatch, ComparesRules) {
  EXPECT_TRUE(
      says(problem([](FileLayout& file) { file.groups[0].rule = "sgd"; }),
           {"\"default\" has the rule \"sgd\", expected \"adamw\"",
            "LoadOptions::other_rule = OtherRule::start_anew",
            "loads the parameters and starts the state anew"}));
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.groups[0].hyperparameters.pop_back();
                   }),
                   {"\"default\" lacks the hyperparameter \"epsilon\""}));
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.groups[0].hyperparameters.emplace_back("gamma", 1.);
                   }),
                   {"\"gamma\", which the rule does not know"}));
  EXPECT_TRUE(says(
      problem([](FileLayout& file) { file.groups.clear(); }),
      {"groups missing in the file: \"default\"",
       "LoadOptions::match = Match::partial", "LoadOptions::weights_only"}));
}

constexpr LoadOptions partial{.match = Match::partial};
constexpr LoadOptions anew{.other_rule = OtherRule::start_anew};
using Sources = std::vector<ElementSource>;
using enum ElementSource;

Sources sources_of(const ParameterMatch& match) {
  Sources sources;
  for (const ElementOrigin& origin : match.origins)
    sources.push_back(origin.source);
  return sources;
}

TEST(LayoutMatch, TakesEverythingOfTheSameModel) {
  const FileLayout mine = model();
  for (const LoadOptions& options : {LoadOptions{}, partial, anew}) {
    const FileLayout theirs = model();
    const LayoutMatch match = match_layouts(mine, theirs, options);
    ASSERT_EQ(match.parameters.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(match.parameters[i].in_file, &theirs.parameters[i]);
      EXPECT_FALSE(match.parameters[i].anew);
      EXPECT_EQ(sources_of(match.parameters[i]), Sources(3, file));
    }
    EXPECT_EQ(match.groups.at(0), &theirs.groups[0]);
    EXPECT_TRUE(match.missing.empty());
    EXPECT_TRUE(match.extra.empty());
    EXPECT_TRUE(match.misshaped.empty());
  }
}

TEST(LayoutMatch, ListsWhatIsNotShared) {
  FileLayout theirs = model();
  theirs.parameters.erase(theirs.parameters.begin() + 4);
  theirs.parameters[0].name = "z";
  theirs.parameters[2].extents = {6};
  theirs.parameters[1].arrays[0].dtype = DType::float16;
  theirs.parameters.push_back(theirs.parameters[0]);
  theirs.parameters.back().name = "y";
  const FileLayout mine = model();
  const LayoutMatch match = match_layouts(mine, theirs, partial);
  EXPECT_EQ(match.missing, (std::vector<std::string>{"a", "e"}));
  EXPECT_EQ(match.extra, (std::vector<std::string>{"z", "y"}));
  EXPECT_EQ(match.misshaped, (std::vector<std::string>{"b", "c"}));
  for (const std::size_t stays : {0u, 1u, 2u, 4u}) {
    EXPECT_EQ(match.parameters[stays].in_file, nullptr);
    EXPECT_TRUE(match.parameters[stays].origins.empty());
  }
  EXPECT_EQ(match.parameters[3].in_file, &theirs.parameters[3]);
  EXPECT_EQ(match.parameters[5].in_file, &theirs.parameters[4]);
}

/// How the first parameter is loaded in part from a changed file.
template <class F>
ParameterMatch first_of(F&& change, FileLayout mine = model()) {
  FileLayout theirs = model();
  change(theirs);
  ParameterMatch match = match_layouts(mine, theirs, partial).parameters.at(0);
  EXPECT_NE(match.in_file, nullptr);
  match.in_file = nullptr;
  return match;
}

TEST(LayoutMatch, StartsOtherStateAnew) {
  const auto expect = [](const ParameterMatch& match, bool is_anew,
                         const Sources& sources) {
    EXPECT_EQ(match.anew, is_anew);
    EXPECT_EQ(sources_of(match), sources);
  };
  expect(first_of([](FileLayout& f) { f.parameters[0].arrays.resize(1); }),
         true, {file, value, zeros});
  expect(first_of([](FileLayout& f) { f.parameters[0].arrays.resize(2); }),
         true, {file, file, zeros});
  expect(first_of([](FileLayout& f) {
           f.parameters[0].arrays.push_back({"more", DType::float32});
         }),
         true, {file, file, zeros});
  expect(first_of([](FileLayout& f) {
           f.parameters[0].arrays[1].dtype = DType::float64;
         }),
         true, {file, value, zeros});
  FileLayout frozen = model();
  frozen.parameters[0].arrays.resize(1);
  expect(first_of([](FileLayout&) {}, frozen), true, {file});
}

TEST(LayoutMatch, TakesOtherTypesFromMain) {
  constexpr LoadOptions convert{.other_type = OtherType::convert};
  const auto match_of = [&](DType value_type, DType state_type) {
    FileLayout theirs = model();
    auto& arrays = theirs.parameters[0].arrays;
    arrays[0].dtype = value_type;
    arrays[2].dtype = state_type;
    if (size_of(value_type) > 2) arrays.erase(arrays.begin() + 1);
    return match_layouts(model(), theirs, convert).parameters.at(0);
  };
  const ParameterMatch half = match_of(DType::float16, DType::float32);
  EXPECT_EQ(sources_of(half), (Sources{file_main, file_main, file}));
  EXPECT_EQ(half.origins[0].dtype, DType::float32);
  const ParameterMatch wide = match_of(DType::float64, DType::float64);
  EXPECT_EQ(sources_of(wide), (Sources{file_value, file_value, file}));
  for (const ElementOrigin& origin : wide.origins)
    EXPECT_EQ(origin.dtype, DType::float64);
  EXPECT_FALSE(wide.anew);
  const ParameterMatch same = match_of(DType::bfloat16, DType::float64);
  EXPECT_EQ(sources_of(same), Sources(3, file));
  EXPECT_EQ(same.origins[0].dtype, DType::bfloat16);
  EXPECT_EQ(same.origins[2].dtype, DType::float64);
}

TEST(LayoutMatch, NamesTheOptionForOtherTypes) {
  const auto retype = [](FileLayout& f) {
    f.parameters[1].arrays[0].dtype = DType::float16;
  };
  EXPECT_TRUE(says(problem(retype), {"LoadOptions::other_type"}));
  EXPECT_EQ(problem([](FileLayout& f) {
              f.parameters[1].extents = {6};
            }).find("other_type"),
            std::string::npos);
}

TEST(LayoutMatch, LoadsAParameterFromAnotherGroup) {
  const auto move_to = [](const char* rule) {
    return first_of([&](FileLayout& f) {
      f.groups.push_back({"other", rule, {}});
      f.parameters[0].group = "other";
    });
  };
  EXPECT_FALSE(move_to("adamw").anew);
  EXPECT_TRUE(move_to("sgd").anew);
  EXPECT_TRUE(
      first_of([](FileLayout& f) { f.parameters[0].group = "gone"; }).anew);
}

TEST(LayoutMatch, LeavesGroupsThatAreNotShared) {
  FileLayout theirs = model();
  theirs.groups = {{"other", "sgd", {}}};
  const LayoutMatch match = match_layouts(model(), theirs, partial);
  EXPECT_EQ(match.groups, std::vector<const GroupLayout*>{nullptr});
}

TEST(LayoutMatch, StartsAnotherRuleAnewWhereAllowed) {
  const auto other_rule = [](FileLayout& f) {
    f.groups[0] = {"default", "sgd", {{"momentum", 0.5}}};
    for (auto& parameter : f.parameters)
      parameter.arrays[2].name = "momentum_buffer";
  };
  EXPECT_TRUE(says(problem(other_rule, partial),
                   {"\"sgd\"", "\"adamw\"", "start_anew"}));
  EXPECT_EQ(problem(other_rule, partial).find("Match::partial"),
            std::string::npos);
  FileLayout theirs = model();
  other_rule(theirs);
  const FileLayout mine = model();
  for (const Match each : {Match::strict, Match::partial}) {
    const LayoutMatch match =
        match_layouts(mine, theirs, {each, OtherRule::start_anew});
    EXPECT_EQ(match.groups, std::vector<const GroupLayout*>{nullptr});
    for (const ParameterMatch& parameter : match.parameters) {
      EXPECT_TRUE(parameter.anew);
      EXPECT_EQ(sources_of(parameter), (Sources{file, file, zeros}));
    }
  }
  // Strict for the rest.
  EXPECT_TRUE(says(problem(
                       [&](FileLayout& f) {
                         other_rule(f);
                         f.parameters[1].arrays.erase(
                             f.parameters[1].arrays.begin() + 1);
                         f.parameters.pop_back();
                       },
                       anew),
                   {"missing in the file: \"f\"",
                    "\"b\" arrays missing in the file: \"main\""}));
}

TEST(LayoutMatch, PassesOverTiedNames) {
  FileLayout mine = model();
  mine.tied = {"tied"};
  FileLayout theirs = model();
  EXPECT_TRUE(match_layouts(mine, theirs, {}).missing.empty());
  theirs.parameters.push_back(theirs.parameters[0]);
  theirs.parameters.back().name = "tied";
  EXPECT_TRUE(match_layouts(mine, theirs, {}).extra.empty());
  EXPECT_TRUE(match_layouts(mine, theirs, partial).extra.empty());
}

TEST(LayoutMatch, SpeaksOfATextWithoutOptions) {
  FileLayout theirs = model();
  theirs.groups[0].rule = "sgd";
  theirs.parameters.pop_back();
  const std::string text = checkpoint_error(
      [&] { match_layouts(model(), theirs, {}, Medium::text); });
  EXPECT_TRUE(says(text, {"the text does not fit", "missing in the text"}));
  EXPECT_EQ(text.find("LoadOptions"), std::string::npos);
}

}  // namespace
