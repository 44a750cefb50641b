// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Engine "gather": one rank, the root, has the file or the state in its memory,
// and all elements pass through it, one state array of one bucket at a time.
#pragma once

#include <kzero/sharded_optimizer.hpp>
#include <span>
#include <vector>

#include "io/array_ends.hpp"
#include "io/file_layout.hpp"
#include "io/layout_match.hpp"
#include "io/root_status.hpp"

namespace kzero::detail {

/// What the root gathers to; null on the other ranks and after a failure.
struct GatherRoot {
  const FileLayout* layout = nullptr;  // as layout_of makes it
  ArraySink* sink = nullptr;
};

/// What the root scatters from, likewise.
struct ScatterRoot {
  const FileLayout* layout = nullptr;  // as layout_of makes it
  const ArraySource* source = nullptr;
  /// As in the layout, where each array comes from.
  const ElementSources* sources = nullptr;
};

/// Collective. Writes all arrays, in the order of the buckets. Throws
/// CheckpointError on every rank, before the next bucket, when the root has
/// failed.
void gather_arrays(ShardedOptimizer& optimizer, const GatherRoot& root,
                   RootStatus& status);

/// Collective. Reads the arrays of the loaded parameters (by id: 1, else 0; the
/// same on every rank) into the optimizer, and touches no others. Throws
/// CheckpointError on every rank, before the next array, when the root has
/// failed.
void scatter_arrays(ShardedOptimizer& optimizer, const ScatterRoot& root,
                    std::span<const std::int64_t> loaded, RootStatus& status);

}  // namespace kzero::detail
