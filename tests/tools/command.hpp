// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Runs the command kzero.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "io/checkpoint_error.hpp"

namespace kzero::test {

struct Answer {
  int code = -1;
  std::string text;
};

inline Answer ask(const std::string& arguments) {
  const std::string line =
      std::string("'") + KZERO_TEST_COMMAND + "' " + arguments + " 2>&1";
  std::FILE* const pipe = popen(line.c_str(), "r");
  Answer answer;
  std::array<char, 4096> part{};
  while (const std::size_t count =
             std::fread(part.data(), 1, part.size(), pipe))
    answer.text.append(part.data(), count);
  const int status = pclose(pipe);
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

inline void expect(const Answer& answer, int code,
                   std::initializer_list<const char*> words) {
  EXPECT_EQ(answer.code, code) << answer.text;
  EXPECT_TRUE(says(answer.text, words));
}

}  // namespace kzero::test
