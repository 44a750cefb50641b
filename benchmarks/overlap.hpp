// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case O1 of the suite.
#pragma once

#include <mpi.h>

#include <vector>

#include "result.hpp"

namespace kzero::bench {

/// Collective over the ranks. Needs MPI_THREAD_MULTIPLE.
std::vector<Result> overlap(MPI_Comm ranks, int rounds);

}  // namespace kzero::bench
