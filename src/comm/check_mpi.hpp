// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The checker of MPI calls.
#pragma once

#include <string>

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

/// "MPI_Isend failed (mpi_messages.cpp:40): text of MPI".
std::string mpi_failure(int code, const char* call, SourceLine where);

/// Throws CommunicationError unless code is MPI_SUCCESS.
void check_mpi(int code, const char* call,
               SourceLine where = SourceLine::current());

}  // namespace kzero::detail
