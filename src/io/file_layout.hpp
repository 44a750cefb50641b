// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a checkpoint file holds, but for the elements of the arrays: made from
// an optimizer to be saved, or read from a file.
#pragma once

#include <cstdint>
#include <kzero/checkpoint.hpp>
#include <kzero/dtype.hpp>
#include <string>
#include <utility>
#include <vector>

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
};

struct GroupLayout {
  std::string name;
  std::string rule;
  std::vector<std::pair<std::string, double>> hyperparameters;
};

struct FileLayout {
  CheckpointContent content;  // whose step is that of the counters
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
  std::vector<GroupLayout> groups;
  std::vector<ParameterLayout> parameters;
};

/// Layout of a file with this optimizer's parameters, in order of declaration,
/// saved now. Its array k + 1 is the bucket's state array k. Local.
FileLayout layout_of(ShardedOptimizer& optimizer, const UserData& user);

/// Throws CheckpointError, naming what is missing, not expected or different,
/// unless the file has exactly the model's parameters, groups, rules and
/// arrays, with the same shapes and types.
void require_match(const FileLayout& model, const FileLayout& file);

}  // namespace kzero::detail
