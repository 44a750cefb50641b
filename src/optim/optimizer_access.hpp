// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What input and output may see and set of an optimizer: its shards by bucket,
// and the numbers beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <kzero/sharded_optimizer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "optim/loss_scale.hpp"
#include "optim/pending_call.hpp"

namespace kzero::detail {

/// One array of this rank's state in one bucket, shard-sized, host-accessible.
struct ShardArray {
  DType dtype = DType::float32;
  void* data = nullptr;  // plan().shards(bucket).size(rank) elements
};

/// Steps that updated, steps that were skipped, and how many of those came
/// last in a row.
struct StepCounters {
  std::int64_t steps = 0;
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
};

struct OptimizerAccess {
  /// Throws InvalidArgument for an optimizer that was moved from.
  static OptimizerCore& core(ShardedOptimizer&);

  /// Where all elements of a parameter's value lie in C order; null for one in
  /// the caller's own memory that lies otherwise, or has no elements.
  static std::byte* contiguous_value(ShardedOptimizer&, ParameterId);
  /// Elements of the value in C order, wherever they lie.
  static void read_value(ShardedOptimizer&, ParameterId, Range, void* to);
  static void write_value(ShardedOptimizer&, ParameterId, Range,
                          const void* from);
  /// The value in main_dtype, likewise.
  static void read_as_main(ShardedOptimizer&, ParameterId, Range, void* to);

  /// Collective. The values of a bucket that is trained, of which every rank
  /// has its own shard in place.
  static void gather_values(ShardedOptimizer&, std::int64_t bucket,
                            const char* operation);

  /// Collective. Values of elements of a bucket, root's to every rank.
  static void broadcast_values(ShardedOptimizer&, std::int64_t bucket, Range,
                               int root, const char* operation);

  /// Local. Where the main parameter is no array of its own in checkpoints, but
  /// has memory of its own here: this rank's part of it, from the value.
  static void take_main_from_value(ShardedOptimizer&, ParameterId);

  /// This rank's main parameters of a bucket that is trained, wherever they
  /// lie.
  static void* main_shard(ShardedOptimizer&, std::int64_t bucket);

  /// State arrays of this bucket: main first where the parameters have 16
  /// bits, then as many as its most demanding rule needs. The same number on
  /// every rank.
  static std::vector<ShardArray> shard_arrays(ShardedOptimizer&,
                                              std::int64_t bucket);

  /// What the elements of one parameter mean in the arrays of its bucket: name
  /// k ("main", "exp_avg", ...) belongs to array k. A parameter uses no arrays
  /// past its names (they are zero there), since parameters of several rules
  /// can share a bucket.
  static std::vector<std::string_view> state_names(const ShardedOptimizer&,
                                                   ParameterId);

  static const std::vector<std::string>& group_names(const ShardedOptimizer&);
  /// The group whose rule updates it: its own, or the one beside that.
  static const std::string& group_name(const ShardedOptimizer&, ParameterId);
  static const Rule& rule(const ShardedOptimizer&, std::size_t group);
  static void set_rule(ShardedOptimizer&, std::size_t group, const Rule&);

  static void set_update_count(ShardedOptimizer&, ParameterId, std::int64_t);
  static StepCounters counters(const ShardedOptimizer&);
  static void set_counters(ShardedOptimizer&, const StepCounters&);

  static const LossScaleState& loss_scale(const ShardedOptimizer&);
  static void set_loss_scale(ShardedOptimizer&, const LossScaleState&);

  /// Runs transfers of its buckets. A CommunicationError makes it unusable.
  static void run(ShardedOptimizer&, const std::function<void()>& transfers);

  static std::shared_ptr<PendingCall>& pending_call(ShardedOptimizer&);

  /// Calls body(i) for i in [0, count) on the optimizer's execution space.
  static void for_each(ShardedOptimizer&, const char* label, std::int64_t count,
                       const std::function<void(std::int64_t)>& body);

  /// Makes averaged_gradient() unavailable until the next step().
  static void forget_averaged(ShardedOptimizer&);

  /// Waits for gathers under way, and for the work on the optimizer's
  /// execution space; throws InvalidArgument (naming what) between a mark and
  /// step().
  static void synchronize(ShardedOptimizer&, const char* what);
};

}  // namespace kzero::detail
