// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What has to be done while MPI can still be called, and ranks may wait for
// one another.
#pragma once

namespace kzero::detail {

/// MPI_Finalize begins with the call; the one that was asked for last comes
/// first. It must not throw. Throws CommunicationError.
void call_at_finalize(void (*call)());

}  // namespace kzero::detail
