// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Where a call stands, for the checkers of C libraries.
#pragma once

namespace kzero::detail {

/// The line of a call. Stands in for std::source_location, which clang has
/// from version 15 on only.
struct SourceLine {
  const char* file = "";
  int line = 0;

  static constexpr SourceLine current(const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace kzero::detail
