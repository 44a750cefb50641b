// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What every rank takes from a file beside the arrays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <kzero/checkpoint.hpp>
#include <vector>

#include "io/file_layout.hpp"

namespace kzero::detail {

struct RestoredNumbers {
  CheckpointContent content;
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
  std::vector<std::int64_t> update_counts;           // by parameter
  std::vector<std::vector<double>> hyperparameters;  // by group, in order
};

/// Takes them from the file. Throws CheckpointError, naming path, when the file
/// does not fit the model, or its hyperparameters are not valid. Local.
RestoredNumbers restored_numbers(const ShardedOptimizer& optimizer,
                                 const FileLayout& model,
                                 const FileLayout& file,
                                 const std::filesystem::path& path);

/// Collective. Rank 0's to every rank.
void broadcast(Communicator& communicator, RestoredNumbers& numbers);

/// Sets counts and hyperparameters. Local, on every rank alike.
void restore(ShardedOptimizer& optimizer, const RestoredNumbers& numbers);

}  // namespace kzero::detail
