// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Ranks that have talked to one another meet once more when MPI ends.
//
// After an error, or a ticket that was dropped before its end, there are
// messages that nobody will receive. MPI_Finalize may wait for ever to get rid
// of them, when the rank that they are for has gone there before and takes
// nothing in any more (MPICH does). So every rank sends one more message to
// each of the others and waits for theirs: whoever has them has taken in all
// that was sent before, wanted or not. This is the beginning of MPI_Finalize,
// where a rank may wait for others.
//
// A rank does not know of the others' errors, and may have let go of the
// communicator long since. So the first communicator over a set of ranks is
// kept for all that are made over them, and they meet whether or not something
// went wrong.
//
// The wait is bounded, since a rank may not know that it is waited for: one on
// which make_communicator failed when it did not on others. Who has waited for
// the timeout and a little more gives up, and MPI goes on as it would have
// done: a rank that comes later than that may hang. Neither is there help for
// messages of communicators that MPI progresses apart from one another.
#pragma once

#include <mpi.h>

#include <chrono>

namespace kzero::detail {

/// Whether there is a communicator over the same ranks by which they will meet.
bool has_farewell(MPI_Comm communicator);

/// They will meet by this one, which must not be freed: nor are the attributes
/// that it has from the caller's. Every rank of it has to say so.
void meet_at_finalize(MPI_Comm communicator, std::chrono::milliseconds timeout);

}  // namespace kzero::detail
