// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "result.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <kzero/error.hpp>
#include <sstream>

namespace kzero::bench {
namespace {

std::string printed(Format format) {
  Report report;
  report.add(
      {"overlap", "serial / overlapped", 1.75, 0.0625, Goal::at_least, 1.5});
  report.add({"sum", "ours / memcpy", 12.5, 0, Goal::at_most, 2});
  report.add(not_installed("sum", "theirs / ours"));
  std::ostringstream out;
  report.print(out, format);
  return out.str();
}

TEST(Report, IsAnAlignedTable) {
  EXPECT_EQ(
      printed(Format::table),
      "case     what                         ratio  spread    target  met\n"
      "overlap  serial / overlapped          1.750   0.062  >= 1.500  yes\n"
      "sum      ours / memcpy               12.500   0.000  <= 2.000  no\n"
      "sum      theirs / ours        not installed\n");
}

TEST(Report, IsOneJsonObjectALine) {
  EXPECT_EQ(printed(Format::json),
            R"({"case":"overlap","what":"serial / overlapped","ratio":1.75,)"
            R"("spread":0.0625,"goal":"at_least","target":1.5,"met":true})"
            "\n"
            R"({"case":"sum","what":"ours / memcpy","ratio":12.5,)"
            R"("spread":0.0,"goal":"at_most","target":2.0,"met":false})"
            "\n"
            R"({"case":"sum","what":"theirs / ours","absent":"not installed"})"
            "\n");
}

TEST(Report, IsNothingWithoutResults) {
  std::ostringstream out;
  Report().print(out, Format::table);
  Report().print(out, Format::json);
  EXPECT_EQ(out.str(), "");
}

TEST(Result, IsMetAtItsTarget) {
  Result result{"c", "w", 2, 0, Goal::at_least, 2};
  EXPECT_TRUE(result.met());
  result.goal = Goal::at_most;
  EXPECT_TRUE(result.met());
  result.ratio = std::nan("");
  EXPECT_FALSE(result.met());
  EXPECT_FALSE(not_installed("c", "w").met());
}

TEST(Summary, IsMedianAndSpread) {
  const Result odd = summarize("c", "w", {4, 1, 2}, Goal::at_least, 1);
  EXPECT_EQ(odd.ratio, 2);
  EXPECT_EQ(odd.spread, 1.5);
  const Result even = summarize("c", "w", {4, 1, 2, 3}, Goal::at_least, 1);
  EXPECT_EQ(even.ratio, 2.5);
  EXPECT_THROW(summarize("c", "w", {}, Goal::at_least, 1), InvalidArgument);
}

}  // namespace
}  // namespace kzero::bench
