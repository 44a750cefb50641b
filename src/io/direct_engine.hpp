// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Engine "direct": the root has laid the file out, and every rank writes, or
// reads, what it owns at its place, without a message.
#pragma once

#include <cstdint>
#include <filesystem>
#include <kzero/sharded_optimizer.hpp>
#include <string>
#include <vector>

#include "io/file_layout.hpp"
#include "io/layout_match.hpp"
#include "io/manifest.hpp"
#include "io/new_file.hpp"
#include "io/open_file.hpp"

namespace kzero::detail {

/// What every rank has to know of a file. Travels from the root.
struct SharedFile {
  std::string path;
  std::string temporary;  // of a new one
  std::string mark;       // its first bytes
  /// By parameter of the model's layout and array.
  std::vector<std::vector<StoredArray>> arrays;
  /// Likewise, of one that is loaded: where an array comes from; empty for a
  /// parameter that stays as it is.
  std::vector<std::vector<ElementSource>> sources;
};

/// Collective. Root's, on every rank.
void broadcast(Communicator& communicator, SharedFile& file, Subject subject,
               int root);

/// The checksums of what this rank has written or read, by array.
using PartialSums = std::vector<std::int64_t>;

/// Place of an array among those of a layout.
std::vector<std::size_t> first_arrays(
    const std::vector<std::vector<StoredArray>>& arrays);

/// Local. Writes what this rank owns. Throws CheckpointError.
PartialSums write_own_pieces(ShardedOptimizer& optimizer,
                             const FileLayout& layout, const SharedFile& shared,
                             const PartOfNewFile& file);

/// Local. Reads what this rank owns of the loaded parameters from where sources
/// says. Throws CheckpointError.
PartialSums read_own_pieces(ShardedOptimizer& optimizer,
                            const FileLayout& layout, const SharedFile& shared,
                            const OpenFile& file);

}  // namespace kzero::detail
