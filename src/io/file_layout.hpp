// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a checkpoint holds, but for the elements of the arrays: made from an
// optimizer to be saved, or read from a file or a text.
#pragma once

#include <cstdint>
#include <kzero/checkpoint.hpp>
#include <kzero/dtype.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optim/loss_scale.hpp"

namespace kzero::detail {

struct ArrayLayout {
  std::string name;  // "value", "main", "exp_avg", ...
  DType dtype = DType::float32;
};

struct ParameterLayout {
  std::string name;
  std::string group;
  std::int64_t update_count = 0;
  std::vector<std::int64_t> extents;  // of each of its arrays
  std::vector<ArrayLayout> arrays;    // value first
  ParameterId id = {};                // of a model's parameter
};

struct GroupLayout {
  std::string name;
  std::string rule;
  std::vector<std::pair<std::string, double>> hyperparameters;
};

struct ScalerLayout {
  std::string kind;  // "none", "constant", "dynamic", or one of tomorrow
  LossScaleState state;
  /// Of kind dynamic, where it is known; the initial scale is not.
  std::optional<DynamicScaler> scaling = {};
};

struct FileLayout {
  CheckpointContent content;  // whose step is that of the counters
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
  std::vector<GroupLayout> groups;
  std::vector<ParameterLayout> parameters;
  std::optional<ScalerLayout> scaler;  // files of format 1.0 have none
  /// Of a model: names that are tied to another one's storage, and are not
  /// among parameters.
  std::vector<std::string> tied;
};

/// Of this version of the library, made now.
CheckpointContent content_now(std::int64_t step, std::int64_t world_size);

/// Layout of a file with this optimizer's parameters, in order of declaration,
/// saved now. Its array k + 1 is the bucket's state array k. Local.
FileLayout layout_of(const ShardedOptimizer& optimizer, const UserData& user);

/// "none", "constant", "dynamic".
std::string_view kind_name(Scaler::Kind kind);
bool is_kind(std::string_view name);

}  // namespace kzero::detail
