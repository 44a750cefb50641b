// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Engine "gather": rank 0 alone touches the file, and all elements pass through
// it, one state array of one bucket at a time.
#pragma once

#include <kzero/sharded_optimizer.hpp>

#include "io/checkpoint_file.hpp"
#include "io/file_layout.hpp"
#include "io/root_status.hpp"

namespace kzero::detail {

/// What rank 0 works with; null on the other ranks and after a failure.
struct RootFile {
  const FileLayout* layout = nullptr;        // as layout_of makes it
  CheckpointWriter* writer = nullptr;        // to save
  const CheckpointReader* reader = nullptr;  // to load
};

/// Collective. Writes all arrays. Throws CheckpointError on every rank, before
/// the next bucket, when rank 0 has failed.
void gather_arrays(ShardedOptimizer& optimizer, const RootFile& root,
                   RootStatus& status);

/// Collective. Reads all arrays into the optimizer. Throws CheckpointError on
/// every rank, before the next array, when rank 0 has failed.
void scatter_arrays(ShardedOptimizer& optimizer, const RootFile& root,
                    RootStatus& status);

}  // namespace kzero::detail
