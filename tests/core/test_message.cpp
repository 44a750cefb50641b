// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <limits>
#include <locale>
#include <vector>

#include "core/message.hpp"

namespace kzero::detail {
namespace {

TEST(Message, ConcatenatesPartsOfEveryKind) {
  const std::vector<std::int64_t> extents = {2, 3};
  EXPECT_EQ(concat("a ", std::string("b"), std::string_view(" c"), ' ', true,
                   ' ', 7, ' ', -8LL, ' ', 9ul, ' ', DType::bfloat16, ' ',
                   Range{1, 4}, ' ', extents),
            "a b c true 7 -8 9 bfloat16 [1, 4) (2, 3)");
  EXPECT_EQ(concat(), "");
  EXPECT_EQ(concat(std::vector<std::int64_t>{}), "()");
}

TEST(Message, NumbersThatDifferLookDifferent) {
  EXPECT_EQ(concat(0.001), "0.001");
  EXPECT_EQ(concat(0.1), "0.1");
  EXPECT_NE(concat(0.1), concat(0.1 + 0x1p-56));
  EXPECT_EQ(concat(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(concat(std::numeric_limits<std::int64_t>::min()),
            "-9223372036854775808");
}

struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Message, TheLocaleChangesNothing) {
  const std::locale before =
      std::locale::global(std::locale(std::locale(), new Grouping));
  EXPECT_EQ(concat(1234567), "1234567");
  EXPECT_EQ(concat(1234.5), "1234.5");
  std::locale::global(before);
}

TEST(Message, QuotedStaysOnOneLine) {
  EXPECT_EQ(quoted("w"), "\"w\"");
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("a/b c"), "\"a/b c\"");
  EXPECT_EQ(quoted("caf\xc3\xa9"), "\"caf\xc3\xa9\"");
  EXPECT_EQ(quoted("\"\\"), "\"\\\"\\\\\"");
  EXPECT_EQ(quoted(std::string_view("\n\0\x7f", 3)), "\"\\x0a\\x00\\x7f\"");
}

TEST(Message, BytesForPeople) {
  EXPECT_EQ(bytes(0), "0 bytes");
  EXPECT_EQ(bytes(1), "1 byte");
  EXPECT_EQ(bytes(240), "240 bytes");
  EXPECT_EQ(bytes(1023), "1023 bytes");
  EXPECT_EQ(bytes(1024), "1 KiB");
  EXPECT_EQ(bytes(1536), "1.5 KiB");
  EXPECT_EQ(bytes(std::int64_t{25} << 20), "25 MiB");
  EXPECT_EQ(bytes((std::int64_t{1} << 20) - 1), "1023.9 KiB");
  EXPECT_EQ(bytes(std::int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(bytes(std::numeric_limits<std::int64_t>::max()), "7.9 EiB");
  EXPECT_EQ(bytes(-3), "-3 bytes");
}

TEST(Message, CountsWithTheirNoun) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "rank"), "2 ranks");
}

}  // namespace
}  // namespace kzero::detail
