// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <string>

#include "io/checkpoint_error.hpp"
#include "io/file_layout.hpp"

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
std::string problem(F&& change) {
  FileLayout file = model();
  change(file);
  return checkpoint_error([&] { require_match(model(), file); });
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
           {"\"default\" has the rule \"sgd\", expected \"adamw\""}));
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.groups[0].hyperparameters.pop_back();
                   }),
                   {"\"default\" lacks the hyperparameter \"epsilon\""}));
  EXPECT_TRUE(says(problem([](FileLayout& file) {
                     file.groups[0].hyperparameters.emplace_back("gamma", 1.);
                   }),
                   {"\"gamma\", which the rule does not know"}));
  EXPECT_TRUE(says(problem([](FileLayout& file) { file.groups.clear(); }),
                   {"groups missing in the file: \"default\""}));
}

}  // namespace
