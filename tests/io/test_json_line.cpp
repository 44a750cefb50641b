// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/error.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "io/json_line.hpp"

using Json = nlohmann::json;
using kzero::detail::JsonLine;

namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const kzero::InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

bool is_json(const std::string& text) {
  JsonLine line(text, 1);
  return error_of([&] {
           line.skip();
           line.end();
         }) == "no error";
}

std::string text_of(const std::string& text) {
  JsonLine line(text, 1);
  return std::string(line.text());
}

std::int64_t integer_of(const std::string& text) {
  JsonLine line(text, 1);
  const std::int64_t value = line.integer();
  line.end();
  return value;
}

TEST(JsonLine, ReadsWhatIsAskedFor) {
  std::vector<std::int64_t> numbers;
  std::string name;
  JsonLine line(" [ \"a\" ,[1, -2\t,3],[ ],{\"x\": [null, 1.5e-3]}, true]\r",
                7);
  const std::size_t count = line.list([&](std::size_t i) {
    if (i == 0)
      name = line.text();
    else if (i == 1)
      line.list([&](std::size_t) { numbers.push_back(line.integer()); });
    else
      line.skip();
  });
  line.end();
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(name, "a");
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{1, -2, 3}));
}

TEST(JsonLine, KnowsEveryIntegerAndNoOtherNumber) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(integer_of(std::to_string(most)), most);
  EXPECT_EQ(integer_of(std::to_string(least)), least);
  EXPECT_EQ(integer_of("-0"), 0);
  for (const char* text :
       {"9223372036854775808", "-9223372036854775809", "1e99", "1.0", "1e0",
        "01", "-", "+1", "", " ", "0x1", "1 2", "\"1\"", "[1]", "NaN"})
    EXPECT_NE(error_of([&] { integer_of(text); }), "no error") << text;
}

// Against another implementation.
TEST(JsonLine, ReadsTheSameTextsAsAnother) {
  for (const char* text :
       {R"("")", R"("plain")", R"("\"\\\/\b\f\n\r\t")",
        R"("\u0041\u00e9\u20AC")", R"("\ud83d\ude00 \uD83D\uDE00")",
        R"("a\u0000b")", "\"gr\xc3\xb6\xc3\x9f\x65\"", "\"\xf0\x9f\x98\x80\"",
        "\"\x7f\""})
    EXPECT_EQ(text_of(text), Json::parse(text).get<std::string>()) << text;
}

TEST(JsonLine, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "[",
                           "]",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "{",
                           "{}}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:1}",
                           "tru",
                           "truth",
                           "nul",
                           "False",
                           "'a'",
                           "\"a",
                           "\"\\\"",
                           "\"\\",
                           "\"\\x41\"",
                           "\"\\u00\"",
                           "\"\\u00g0\"",
                           "\"\\u-001\"",
                           "\"\\ud800\"",
                           "\"\\ud800x\"",
                           "\"\\ud800\\n\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\t\"",
                           "\"\xff\"",
                           "\"\xc3\"",
                           "\"\xed\xa0\x80\"",
                           "\"\\n\xc3\"",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "00",
                           "-01",
                           "--1",
                           "1 1",
                           "//",
                           "[]//"}) {
    EXPECT_FALSE(is_json(text)) << text;
    EXPECT_FALSE(Json::accept(text)) << text;
  }
  EXPECT_FALSE(is_json(std::string("[1,\0]", 5)));
  EXPECT_FALSE(is_json(std::string("\"\0\"", 3)));
}

// One to four bytes of a line are other ones.
TEST(JsonLine, JudgesDamagedLinesAsAnother) {
  const std::string good =
      R"(["b\u00e9\ud83d\ude00/", -12, [3, 0], [["v", 1.5e-3, {"a": null}], ["größe", false]], true])";
  const std::string others = "[]{},:\"\\/u0159deE.+- \tnt\xc3\xa4\xff";
  std::mt19937 random(1);
  ASSERT_TRUE(is_json(good));
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (unsigned k = 0; k <= random() % 4; ++k)
      text[random() % text.size()] = others[random() % others.size()];
    EXPECT_EQ(is_json(text), Json::accept(text)) << text;
    text.resize(random() % text.size());
    EXPECT_EQ(is_json(text), Json::accept(text)) << text;
  }
}

TEST(JsonLine, RefusesWhatIsNestedDeeply) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(is_json(nested(16)));
  EXPECT_FALSE(is_json(nested(17)));
  const std::string deep = nested(1000000);
  JsonLine line(deep, 3);
  const std::string error = error_of([&] { line.skip(); });
  EXPECT_NE(error.find("line 3 is nested deeper"), error.npos) << error;
}

TEST(JsonLine, SaysWhere) {
  JsonLine line("[1, x]", 12);
  const std::string error =
      error_of([&] { line.list([&](std::size_t) { line.integer(); }); });
  EXPECT_EQ(error, "line 12 has \"x]\" at byte 4, expected an integer");
}

}  // namespace
