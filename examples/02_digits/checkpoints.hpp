// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a run saves beside parameters and optimizer state, and how it goes on.
#pragma once

#include <cstdint>
#include <kzero/kzero.hpp>

#include "options.hpp"

namespace digits {

/// Local. Throws std::runtime_error when the folder of options.checkpoint is
/// missing: better said before the training than after it.
void check_folder(const Options& options);

/// Collective. Saves to options.checkpoint after this many epochs.
void save(kzero::ShardedOptimizer& optimizer, const Options& options,
          std::int64_t epochs);

/// Collective. Loads options.checkpoint, which any number of ranks may have
/// saved, and returns the epochs done. The file's hyperparameters hold, unless
/// the command line gives others. Throws UserError for a file of a run with
/// other batches: the training would silently become another one.
std::int64_t resume(kzero::ShardedOptimizer& optimizer, const Options& options);

}  // namespace digits
