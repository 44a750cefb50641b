// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The model that a plan is made for: declared in JSON, or found in a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <kzero/optimizer_options.hpp>
#include <kzero/parameter_set.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kzero::tools {

struct PlannedModel {
  ParameterSet parameters;
  /// Rules of groups; of a checkpoint, which has the arrays themselves, none.
  OptimizerOptions options;
  /// By parameter.
  std::vector<std::size_t> state_arrays;
};

/// What takes the place of what the model says, or does not say.
struct ModelChoices {
  std::optional<DType> type;
  std::optional<DType> gradient_type;
  /// Of a model that has no rules.
  std::string rule = "adamw";
  std::int64_t most_parameters = 1'000'000;
};

/// Of a model like this, where all but extents is optional, and {} in the names
/// of what is repeated stands for the number of the repetition:
///   {"rule": "adamw", "type": "bfloat16", "gradient_type": "float32",
///    "groups": {"no_decay": {"rule": "sgd", "hyperparameters": {"momentum":
///      0.9}}},
///    "parameters": [
///      {"name": "embedding", "extents": [32000, 8192], "type": "float32",
///       "gradient_type": "float32", "group": "no_decay", "chunk": 0,
///       "frozen": false, "tied_to": "..."},
///      {"repeat": 80, "parameters": [
///        {"name": "layers.{}.norm", "extents": [8192]}]}]}
/// Throws InvalidArgument for anything else, and for more than the most
/// parameters.
PlannedModel parse_model(std::string_view text, const ModelChoices& choices);

/// Of a file like this (.json), of a checkpoint, or of .safetensors and .npz.
PlannedModel read_model(const std::filesystem::path& path,
                        const ModelChoices& choices);

}  // namespace kzero::tools
