// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What input and output may see and set of an optimizer: its shards by bucket,
// and the numbers beside them.
#pragma once

#include <cstdint>
#include <kzero/sharded_optimizer.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kzero::detail {

/// One array of this rank's state in one bucket, shard-sized, host-accessible.
struct ShardArray {
  std::string_view name;  // "main", "exp_avg", ...
  DType dtype = DType::float32;
  void* data = nullptr;  // plan().shards(bucket).size(rank) elements
};

struct OptimizerAccess {
  /// The whole parameter bucket (padding included) of Buffer::dtype elements.
  static void* parameter_bucket(ShardedOptimizer&, std::int64_t bucket);

  /// State arrays that this bucket has: "main" first where the parameters have
  /// 16 bits, then the union of its rules' state arrays. The same on every
  /// rank. An array can hold values for some parameters of the bucket only:
  /// parameter p uses array a when state_names(p) has its name.
  static std::vector<ShardArray> shard_arrays(ShardedOptimizer&,
                                              std::int64_t bucket);

  /// State arrays of one parameter ("main" included where it has one).
  static std::vector<std::string_view> state_names(const ShardedOptimizer&,
                                                   ParameterId);

  static const std::vector<std::string>& group_names(const ShardedOptimizer&);
  static const Rule& rule(const ShardedOptimizer&, std::size_t group);
  static void set_rule(ShardedOptimizer&, std::size_t group, const Rule&);

  static void set_update_count(ShardedOptimizer&, ParameterId, std::int64_t);
  static void set_steps(ShardedOptimizer&, std::int64_t);

  /// Waits for the work on the optimizer's execution space; throws
  /// InvalidArgument (naming what) between a mark and step().
  static void synchronize(ShardedOptimizer&, const char* what);
};

}  // namespace kzero::detail
