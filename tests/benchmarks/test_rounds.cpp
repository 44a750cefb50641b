// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "rounds.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kzero::bench {
namespace {

TEST(Rounds, AlternateAndBeginWithAnotherEachTime) {
  std::string order;
  const Candidate candidates[] = {[&] { return order += 'a', 1.0; },
                                  [&] { return order += 'b', 2.0; },
                                  [&] { return order += 'c', 3.0; }};
  const auto seconds = alternate(4, candidates);
  EXPECT_EQ(order, "abcabcbcacababc");
  EXPECT_EQ(seconds[0], std::vector<double>(4, 1.0));
  EXPECT_EQ(seconds[1], std::vector<double>(4, 2.0));
  EXPECT_EQ(seconds[2], std::vector<double>(4, 3.0));
}

TEST(Rounds, AreComparedOneByOne) {
  EXPECT_EQ(ratios(std::vector{1.0, 6.0}, std::vector{2.0, 3.0}),
            (std::vector{0.5, 2.0}));
}

}  // namespace
}  // namespace kzero::bench
