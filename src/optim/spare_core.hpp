// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Whether there is a core for a thread that polls.
#pragma once

#include <kzero/communicator.hpp>
#include <thread>

namespace kzero::detail {

/// Collective, the same answer on every rank: whether every rank has a core
/// that its own threads of computation, and those of other ranks of the
/// communicator that share its cores, leave idle. Processes that are not of
/// the communicator are not known.
bool every_rank_has_a_spare_core(Communicator& communicator, int threads);

/// The thread may run wherever a thread of this process may: it leaves the core
/// that it was bound to with the one that made it.
void use_cores_of_process(std::thread& thread) noexcept;

}  // namespace kzero::detail
