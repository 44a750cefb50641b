// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Engine "gather": rank 0 alone touches the file, and all elements pass through
// it, one state array of one bucket at a time.
#pragma once

#include <kzero/sharded_optimizer.hpp>
#include <span>
#include <vector>

#include "io/checkpoint_file.hpp"
#include "io/file_layout.hpp"
#include "io/layout_match.hpp"
#include "io/root_status.hpp"

namespace kzero::detail {

/// What rank 0 works with; null on the other ranks and after a failure.
struct RootFile {
  const FileLayout* layout = nullptr;        // as layout_of makes it
  CheckpointWriter* writer = nullptr;        // to save
  const CheckpointReader* reader = nullptr;  // to load
  /// To load: as in the layout, where each array comes from.
  const std::vector<std::vector<ElementSource>>* sources = nullptr;
};

/// Collective. Writes all arrays. Throws CheckpointError on every rank, before
/// the next bucket, when rank 0 has failed.
void gather_arrays(ShardedOptimizer& optimizer, const RootFile& root,
                   RootStatus& status);

/// Collective. Reads the arrays of the loaded parameters (by id: 1, else 0; the
/// same on every rank) into the optimizer, and touches no others. Throws
/// CheckpointError on every rank, before the next array, when rank 0 has
/// failed.
void scatter_arrays(ShardedOptimizer& optimizer, const RootFile& root,
                    std::span<const std::int64_t> loaded, RootStatus& status);

}  // namespace kzero::detail
