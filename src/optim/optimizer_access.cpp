// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/optimizer_access.hpp"

#include <cstring>
#include <kzero/error.hpp>

#include "optim/optimizer_core.hpp"
#include "storage/kokkos_support.hpp"
#include "storage/strided_copy.hpp"

namespace kzero::detail {

OptimizerCore& OptimizerAccess::core(ShardedOptimizer& optimizer) {
  static_cast<void>(optimizer.steps());
  return *optimizer.core_;
}

std::byte* OptimizerAccess::contiguous_value(ShardedOptimizer& optimizer,
                                             ParameterId id) {
  const OptimizerCore& core = *optimizer.core_;
  const ParameterInfo& info = core.parameters[id];
  if (!info.external)
    return core.bucket_of(id).parameters +
           core.in_bucket(id).begin * size_of(info.dtype);
  const ExternalArray& value = info.external->value;
  return value.is_contiguous() ? static_cast<std::byte*>(value.data) : nullptr;
}

void OptimizerAccess::read_value(ShardedOptimizer& optimizer, ParameterId id,
                                 Range range, void* to) {
  const ParameterInfo& info = optimizer.core_->parameters[id];
  const std::int64_t width = size_of(info.dtype);
  if (info.external)
    read_elements(info.external->value, range, to);
  else
    std::memcpy(to, contiguous_value(optimizer, id) + range.begin * width,
                static_cast<std::size_t>(range.size() * width));
}

void OptimizerAccess::write_value(ShardedOptimizer& optimizer, ParameterId id,
                                  Range range, const void* from) {
  const ParameterInfo& info = optimizer.core_->parameters[id];
  const std::int64_t width = size_of(info.dtype);
  if (info.external)
    write_elements(info.external->value, range, from);
  else
    std::memcpy(contiguous_value(optimizer, id) + range.begin * width, from,
                static_cast<std::size_t>(range.size() * width));
}

void OptimizerAccess::read_as_main(ShardedOptimizer& optimizer, ParameterId id,
                                   Range range, void* to) {
  optimizer.core_->read_as_main(id, range, static_cast<std::byte*>(to));
}

// What lies in the caller's memory goes rank by rank through staging.
void OptimizerAccess::gather_values(ShardedOptimizer& optimizer,
                                    std::int64_t bucket,
                                    const char* operation) {
  OptimizerCore& core = *optimizer.core_;
  const BucketWork& work = core.buckets[static_cast<std::size_t>(bucket)];
  const ShardTable shards = core.plan.shards(bucket);
  if (work.parameters != nullptr) {
    core.communicator
        ->start_all_gather({work.parameters, work.dtype, shards, -1})
        ->wait();
    return;
  }
  for (int rank = 0; rank < core.communicator->size(); ++rank)
    core.broadcast_values(bucket, shards.range(rank), rank, operation);
}

void OptimizerAccess::broadcast_values(ShardedOptimizer& optimizer,
                                       std::int64_t bucket, Range range,
                                       int root, const char* operation) {
  optimizer.core_->broadcast_values(bucket, range, root, operation);
}

void OptimizerAccess::take_main_from_value(ShardedOptimizer& optimizer,
                                           ParameterId id) {
  const OptimizerCore& core = *optimizer.core_;
  const ParameterInfo& info = core.parameters[id];
  if (!info.external || size_of(info.dtype) == 2) return;
  const BucketWork& work = core.bucket_of(id);
  for (const Segment& segment : core.segments_of(id))
    core.read_as_main(id, segment.in_parameter,
                      work.main + segment.in_shard.begin * work.main_bytes);
}

void* OptimizerAccess::main_shard(ShardedOptimizer& optimizer,
                                  std::int64_t bucket) {
  return optimizer.core_->storage->main_shard(bucket);
}

std::vector<ShardArray> OptimizerAccess::shard_arrays(
    ShardedOptimizer& optimizer, std::int64_t bucket) {
  const OptimizerCore& core = *optimizer.core_;
  const BucketWork& work = core.buckets[static_cast<std::size_t>(bucket)];
  const DType dtype = main_dtype(work.dtype);
  std::vector<ShardArray> arrays;
  if (bucket >= core.plan.trained_buckets()) return arrays;
  if (size_of(work.dtype) == 2) arrays.push_back({dtype, work.main});
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

const std::string& OptimizerAccess::group_name(
    const ShardedOptimizer& optimizer, ParameterId id) {
  const OptimizerCore& core = *optimizer.core_;
  return core.group_names[core.group_of(id.index)];
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

void OptimizerAccess::run(ShardedOptimizer& optimizer,
                          const std::function<void()>& transfers) {
  try {
    transfers();
  } catch (const CommunicationError& error) {
    optimizer.core_->fail(error.what());
    throw;
  }
}

std::shared_ptr<PendingCall>& OptimizerAccess::pending_call(
    ShardedOptimizer& optimizer) {
  return optimizer.core_->pending_call;
}

void OptimizerAccess::for_each(ShardedOptimizer& optimizer, const char* label,
                               std::int64_t count,
                               const std::function<void(std::int64_t)>& body) {
  for_each_index(label, optimizer.core_->space, 0, count,
                 [&](std::int64_t i) { body(i); });
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
