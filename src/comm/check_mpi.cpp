// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/check_mpi.hpp"

#include <mpi.h>

#include <cstddef>
#include <kzero/error.hpp>
#include <string_view>

#include "core/message.hpp"

namespace kzero::detail {

std::string mpi_failure(int code, const char* call, SourceLine where) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  std::string_view file = where.file;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  return concat(call, " failed (", file, ':', where.line, "): ",
                std::string_view(text, static_cast<std::size_t>(length)));
}

void check_mpi(int code, const char* call, SourceLine where) {
  if (code != MPI_SUCCESS) {
    throw CommunicationError(mpi_failure(code, call, where));
  }
}

}  // namespace kzero::detail
