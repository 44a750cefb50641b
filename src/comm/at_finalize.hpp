// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What has to be done while MPI can still be called, and ranks may wait for
// one another.
#pragma once

namespace kzero::detail {

/// MPI_Finalize begins with the call; the one that was asked for last comes
/// first. It must not throw. Threads may be inside MPI until the call ends them
/// where the program's MPI_Finalize is the library's own: in every program that
/// links the static library, and where the shared one comes before MPI; a
/// profiling tool may take its place. Throws CommunicationError.
void call_at_finalize(void (*call)());

}  // namespace kzero::detail
