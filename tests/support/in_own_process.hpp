// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Scenarios that start or end MPI and Kokkos: each in a process of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace kzero::test {

/// Ends the process with 0, or with 1 and the reason on stderr.
template <class F>
[[noreturn]] void run(F&& scenario) {
  try {
    std::forward<F>(scenario)();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unexpected: %s\n", error.what());
    std::exit(1);
  }
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

class InOwnProcess : public testing::Test {
 protected:
  InOwnProcess() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

}  // namespace kzero::test

/// Runs the lambda in a process of its own and expects no failure in it.
#define EXPECT_RUNS(...) \
  EXPECT_EXIT(::kzero::test::run(__VA_ARGS__), testing::ExitedWithCode(0), "")
