// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The calls of a random program, and how often each followed each other one.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "core/message.hpp"

namespace kzero::test {

/// The first ten are counted in pairs.
enum class Call {
  mark,
  step,
  skip,
  add_group,
  change_rate,
  save,
  load,
  rebuild,
  consolidate,
  join,
  write,
  zero,
  read
};
constexpr int counted_calls = 10;
constexpr int all_calls = 13;
constexpr const char* call_names[] = {
    "mark",  "step", "skip",    "add_group",   "change_rate",
    "save",  "load", "rebuild", "consolidate", "join",
    "write", "zero", "read"};

/// Whether a call is refused after marks: then nothing may change.
inline bool is_refused_after_marks(Call call) {
  return call != Call::mark && call != Call::step && call != Call::skip &&
         call != Call::read;
}

/// How often each call came straight after each other one.
class Pairs {
 public:
  void count(Call first, Call second) {
    if (int(first) < counted_calls && int(second) < counted_calls)
      ++counts_[std::size_t(first)][std::size_t(second)];
  }
  /// Those that never came.
  std::string missing() const {
    std::string text;
    for (int a = 0; a < counted_calls; ++a)
      for (int b = 0; b < counted_calls; ++b)
        if (counts_[std::size_t(a)][std::size_t(b)] == 0)
          text += detail::concat(" ", call_names[a], "->", call_names[b]);
    return text;
  }

 private:
  std::array<std::array<int, counted_calls>, counted_calls> counts_ = {};
};

}  // namespace kzero::test
