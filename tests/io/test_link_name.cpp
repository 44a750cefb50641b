// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "io/link_name.hpp"

using kzero::detail::is_utf8;
using kzero::detail::link_name;
using kzero::detail::name_of_link;

namespace {

TEST(LinkName, EncodesWhatHdf5CannotHold) {
  EXPECT_EQ(link_name("weight"), "weight");
  EXPECT_EQ(link_name("layer 1/weight"), "layer 1%2Fweight");
  EXPECT_EQ(link_name("50%"), "50%25");
  EXPECT_EQ(link_name("."), "%2E");
  EXPECT_EQ(link_name(".."), "%2E%2E");
  EXPECT_EQ(link_name("..."), "...");
  EXPECT_EQ(link_name("a.b"), "a.b");
  EXPECT_EQ(link_name("tab\there\x7f"), "tab%09here%7F");
  EXPECT_EQ(link_name(std::string("a\0b", 3)), "a%00b");
  EXPECT_EQ(link_name("größe/λ"), "größe%2Fλ");
  EXPECT_EQ(link_name("\xff\xc3"), "%FF%C3");
}

TEST(LinkName, NeverMakesTwoNamesEqual) {
  std::vector<std::string> names = {".",     "..", "%2E", "%2E%2E",
                                    "%252E", "/",  "%2F", "%2f",
                                    "%",     "%%", "ä",   "\xc3"};
  for (int a = 0; a < 256; ++a) {
    names.push_back(std::string("x") + static_cast<char>(a));
    for (int b = 0; b < 256; ++b)
      names.push_back({'x', static_cast<char>(a), static_cast<char>(b)});
  }
  std::set<std::string> links;
  for (const std::string& name : names) {
    const std::string link = link_name(name);
    EXPECT_TRUE(links.insert(link).second) << name;
    EXPECT_EQ(name_of_link(link), name);
    EXPECT_TRUE(is_utf8(link)) << name;
    EXPECT_EQ(link.find_first_of(std::string("/\0", 2)), link.npos) << name;
  }
}

TEST(LinkName, LeavesForeignPercentSignsAlone) {
  EXPECT_EQ(name_of_link("100%"), "100%");
  EXPECT_EQ(name_of_link("%4"), "%4");
  EXPECT_EQ(name_of_link("%zz"), "%zz");
}

TEST(LinkName, KnowsUtf8) {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82",
        "\xe2\x28\xa1", "\xff"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

}  // namespace
