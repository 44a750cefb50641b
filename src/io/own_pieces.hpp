// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a rank owns of the arrays of a checkpoint: its shards of what is
// trained, and on the first rank what is frozen. Together the ranks own
// everything once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <kzero/sharded_optimizer.hpp>

#include "io/file_layout.hpp"
#include "io/manifest.hpp"

namespace kzero::detail {

/// Elements of one array that lie side by side in the file.
struct OwnPiece {
  ArrayIndex index;
  ParameterId id;
  Range elements;  // of the parameter
  std::int64_t element_bytes = 0;
  /// Null for values in the caller's memory that do not lie in C order.
  std::byte* data = nullptr;

  std::int64_t place() const { return elements.begin * element_bytes; }
  std::int64_t bytes() const { return elements.size() * element_bytes; }
};

/// Calls f for all pieces of this rank with elements; those that are
/// neighbours in memory and in the file one after another. layout: of this
/// optimizer. Local.
void for_each_own_piece(ShardedOptimizer& optimizer, const FileLayout& layout,
                        const std::function<void(const OwnPiece&)>& f);

}  // namespace kzero::detail
