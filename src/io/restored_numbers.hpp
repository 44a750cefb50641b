// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What every rank takes from a checkpoint beside the arrays.
#pragma once

#include <cstdint>
#include <kzero/checkpoint.hpp>
#include <string>
#include <vector>

#include "io/file_layout.hpp"
#include "io/layout_match.hpp"

namespace kzero::detail {

struct RestoredNumbers {
  CheckpointContent content;
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
  /// By parameter: whether it is loaded (1) or stays as it is (0, also for a
  /// tied name), and how often it was updated.
  std::vector<std::int64_t> loaded;
  std::vector<std::int64_t> update_counts;
  /// By group: all hyperparameters of its rule, in order; empty where they
  /// stay as they are.
  std::vector<std::vector<double>> values;
  LossScaleState loss_scale;

  // Not broadcast.
  ElementSources sources;
  std::vector<std::string> warnings;  // for the log
};

/// Takes them from a file, a text or a state. Throws CheckpointError when it
/// does not fit the model, or its numbers are not valid. Changes nothing.
/// Local.
RestoredNumbers restored_numbers(const ShardedOptimizer& optimizer,
                                 const FileLayout& model,
                                 const FileLayout& file,
                                 const LoadOptions& options,
                                 Medium medium = Medium::file);

/// Collective. Root's to every rank.
void broadcast(Communicator& communicator, RestoredNumbers& numbers,
               Subject subject, int root);

/// Sets counts, hyperparameters and loss scale; there is no averaged gradient
/// from then on. Local, on every rank alike.
void restore(ShardedOptimizer& optimizer, const RestoredNumbers& numbers);

}  // namespace kzero::detail
