// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Optimizers that were destroyed while their last gathers were under way: the
// usual end of a training that overlaps. A destructor must not wait for other
// ranks, and peers still write to the buckets.
#pragma once

#include <memory>

namespace kzero::detail {

class OptimizerCore;

/// Keeps it until its gathers have ended. That is looked for when another
/// optimizer is made or steps, and in MPI_Finalize, which waits for it, for the
/// timeout of its communicator at most.
void finish_later(std::unique_ptr<OptimizerCore> core);

/// Of one that overlaps and is alive: MPI_Finalize ends what is under way, and
/// its thread.
void remember(OptimizerCore& core);
void forget(OptimizerCore& core) noexcept;

/// Gathers of those that are kept go on, without a wait; what has ended is
/// destroyed.
void advance_left_gathers();

}  // namespace kzero::detail
