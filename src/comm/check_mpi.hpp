// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The checker of MPI calls.
#pragma once

#include <string>

#include "core/source_line.hpp"

namespace kzero::detail {

/// "MPI_Isend failed (mpi_messages.cpp:40): text of MPI".
std::string mpi_failure(int code, const char* call, SourceLine where);

/// Throws CommunicationError unless code is MPI_SUCCESS.
void check_mpi(int code, const char* call,
               SourceLine where = SourceLine::current());

}  // namespace kzero::detail
