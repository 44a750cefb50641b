// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/optimizer_access.hpp"

#include <kzero/error.hpp>

#include "optim/optimizer_core.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {

void* OptimizerAccess::parameter_bucket(ShardedOptimizer& optimizer,
                                        std::int64_t bucket) {
  return optimizer.core_->storage->parameter_bucket(bucket);
}

std::vector<ShardArray> OptimizerAccess::shard_arrays(
    ShardedOptimizer& optimizer, std::int64_t bucket) {
  const OptimizerCore& core = *optimizer.core_;
  const BucketWork& work = core.buckets[static_cast<std::size_t>(bucket)];
  const DType dtype = main_dtype(work.dtype);
  std::vector<ShardArray> arrays;
  if (bucket >= core.plan.trained_buckets()) return arrays;
  if (work.parameter_shard != nullptr) arrays.push_back({dtype, work.main});
  for (std::size_t i = 0; i < core.storage->state_arrays(bucket); ++i)
    arrays.push_back({dtype, work.state[i]});
  return arrays;
}

std::vector<std::string_view> OptimizerAccess::state_names(
    const ShardedOptimizer& optimizer, ParameterId id) {
  const OptimizerCore& core = *optimizer.core_;
  if (core.parameters[id].frozen) return {};
  std::vector<std::string_view> names =
      core.rules[core.group_of(id.index)].state_names();
  if (size_of(core.parameters[id].dtype) == 2)
    names.insert(names.begin(), "main");
  return names;
}

const std::vector<std::string>& OptimizerAccess::group_names(
    const ShardedOptimizer& optimizer) {
  return optimizer.core_->group_names;
}

const Rule& OptimizerAccess::rule(const ShardedOptimizer& optimizer,
                                  std::size_t group) {
  return optimizer.core_->rules[group];
}

void OptimizerAccess::set_rule(ShardedOptimizer& optimizer, std::size_t group,
                               const Rule& rule) {
  optimizer.core_->rules[group] = rule;
  optimizer.core_->hash_rules();
}

void OptimizerAccess::set_update_count(ShardedOptimizer& optimizer,
                                       ParameterId id, std::int64_t count) {
  optimizer.core_->classes.set_count(id.index, count);
}

StepCounters OptimizerAccess::counters(const ShardedOptimizer& optimizer) {
  const OptimizerCore& core = *optimizer.core_;
  return {core.steps, core.skipped_total, core.skipped_in_a_row};
}

void OptimizerAccess::set_counters(ShardedOptimizer& optimizer,
                                   const StepCounters& counters) {
  OptimizerCore& core = *optimizer.core_;
  core.steps = counters.steps;
  core.skipped_total = counters.skipped_total;
  core.skipped_in_a_row = counters.skipped_in_a_row;
}

const LossScaleState& OptimizerAccess::loss_scale(
    const ShardedOptimizer& optimizer) {
  return optimizer.core_->loss_scale;
}

void OptimizerAccess::set_loss_scale(ShardedOptimizer& optimizer,
                                     const LossScaleState& state) {
  optimizer.core_->loss_scale = state;
}

void OptimizerAccess::forget_averaged(ShardedOptimizer& optimizer) {
  optimizer.core_->forget_averaged();
}

void OptimizerAccess::synchronize(ShardedOptimizer& optimizer,
                                  const char* what) {
  optimizer.wait_parameters();
  optimizer.core_->require_unmarked(what);
  fence(optimizer.core_->space, "kzero::wait");
}

}  // namespace kzero::detail
