// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Start and end for callers who do not know MPI or Kokkos.
#pragma once

namespace kzero {

/// Initialises MPI (thread level multiple, where it is provided) and Kokkos,
/// each only if nobody has. Both see and may remove command line arguments.
/// Collective over the job's processes.
/// Throws InvalidArgument when either was already finalised.
void initialize(int& argc, char**& argv);
void initialize();

/// Finalises what initialize() initialised, Kokkos first. Optimizers and
/// communicators must be gone by then. Does nothing on a second call.
void finalize();

}  // namespace kzero
