// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The library's own communicator over the caller's ranks.
#pragma once

#include <mpi.h>

#include <chrono>
#include <kzero/communicator.hpp>

namespace kzero::detail {

/// Duplicates the communicator; errors are returned on the duplicate, the
/// caller's handler stays as it is. Collective. Throws CommunicationError,
/// which names the subject and the function that every rank should have called,
/// when a rank does not come within the timeout.
MPI_Comm duplicate(MPI_Comm communicator, std::chrono::milliseconds timeout,
                   const Subject& subject, const char* function);

}  // namespace kzero::detail
