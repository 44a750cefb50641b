// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which parameters of this rank count in the global quantities, when the model
// is spread over a model-parallel group.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/optimizer_options.hpp>
#include <kzero/parameter_set.hpp>
#include <string>
#include <vector>

namespace kzero::detail {

struct ModelGroup {
  /// By parameter: whether this rank counts it.
  std::vector<std::uint8_t> counted;
  /// By parameter: its place among the split ones that several ranks of the
  /// group hold pieces or copies of; -1 for all others.
  std::vector<std::int64_t> split_place;
  std::int64_t split_count = 0;
  /// Likewise among those that are kept when unmarked and that several ranks
  /// hold.
  std::vector<std::int64_t> keep_place;
  std::int64_t keep_count = 0;
};

/// Without a group: every storage counts. Throws InvalidArgument for a
/// parameter that is tied to one that is not there.
ModelGroup single_model(const ParameterSet& parameters);

/// Collective over the group. Compares the options that it shares and the
/// parameters of equal name. data_group: a number that stands for this rank's
/// data-parallel communicator. Throws InvalidArgument on every rank of the
/// group when they do not go together, or when a rank has a problem.
ModelGroup agree_on_model(Communicator& group, const ParameterSet& parameters,
                          const OptimizerOptions& options,
                          std::uint64_t data_group, const std::string& problem);

}  // namespace kzero::detail
