// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Buckets in another order, with all that they hold.
#include <algorithm>
#include <cstring>
#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_core.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

constexpr Subject rebuild{"rebuild_buckets"};

/// A state array of a bucket, before and after.
struct MovedArray {
  const std::byte* from = nullptr;
  std::byte* BucketWork::*main = nullptr;
  std::size_t state = 0;

  std::byte* in(const BucketWork& bucket) const {
    return main != nullptr ? bucket.*main : bucket.state[state];
  }
};

/// Those whose shards lie with their owners alone, the same on every rank. Main
/// parameters that are the parameters move with these.
std::vector<MovedArray> arrays_of(const BucketWork& bucket,
                                  std::size_t state_arrays) {
  std::vector<MovedArray> arrays;
  if (size_of(bucket.dtype) == 2 || bucket.parameters == nullptr)
    arrays.push_back({bucket.main, &BucketWork::main, 0});
  for (std::size_t k = 0; k < state_arrays; ++k)
    arrays.push_back({bucket.state[k], nullptr, k});
  return arrays;
}

/// Bytes of the largest array of one bucket.
std::int64_t largest_array(const Plan& plan) {
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b)
    most = std::max(most, plan.shards(b).total() *
                              size_of(main_dtype(plan.buffer_of(b).dtype)));
  return most;
}

Range in_bucket(const Plan& plan, ParameterId id) {
  const Placement& place = plan.placement(id);
  return shift(
      place.in_buffer,
      -plan.buckets()[static_cast<std::size_t>(place.bucket)].range.begin);
}

}  // namespace

std::vector<ParameterId> OptimizerCore::observed_order() {
  std::vector<std::int64_t> indices;
  for (const ParameterId id : readiness_order()) indices.push_back(id.index);
  auto count = std::ssize(indices);
  communicator->broadcast(&count, sizeof count, 0, rebuild);
  indices.resize(static_cast<std::size_t>(count));
  communicator->broadcast(
      indices.data(), count * std::int64_t{sizeof(std::int64_t)}, 0, rebuild);
  // A storage is ready with the last of its names.
  const auto size = static_cast<std::size_t>(parameters.size());
  std::vector<std::int64_t> position(size, -1);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const ParameterId storage_id = parameters[{indices[i]}].storage;
    position[static_cast<std::size_t>(storage_id.index)] =
        static_cast<std::int64_t>(i);
  }
  std::vector<ParameterId> order;
  for (std::int64_t i = 0; i < parameters.size(); ++i)
    if (position[static_cast<std::size_t>(i)] >= 0) order.push_back({i});
  std::ranges::sort(order, {}, [&](ParameterId id) {
    return position[static_cast<std::size_t>(id.index)];
  });
  // What has not been seen comes behind it, as it lies now; then second names.
  std::vector<ParameterId> rest;
  for (std::int64_t i = 0; i < parameters.size(); ++i)
    if (position[static_cast<std::size_t>(i)] < 0) rest.push_back({i});
  std::ranges::stable_sort(rest, {}, [&](ParameterId id) {
    const Placement& place = plan.placement(id);
    return std::pair(place.bucket, place.in_buffer.begin);
  });
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

// Values and gradients, which every rank has whole.
void OptimizerCore::move_values(const Plan& from_plan,
                                std::span<const BucketWork> from) {
  // What ranks have in common one of them moves.
  const bool writes_values =
      !options.share_parameters || gather_communicator->sharing().place == 0;
  for_each_index(
      "kzero::rebuild", space, 0, parameters.size(), [&](std::int64_t i) {
        const ParameterInfo& info = parameters[{i}];
        if (info.storage.index != i || info.external) return;
        const BucketWork& old =
            from[static_cast<std::size_t>(from_plan.placement({i}).bucket)];
        const BucketWork& now = bucket_of({i});
        const std::int64_t there = detail::in_bucket(from_plan, {i}).begin;
        const std::int64_t here = in_bucket({i}).begin;
        const std::int64_t value = size_of(info.dtype);
        if (writes_values)
          std::memcpy(now.parameters + here * value,
                      old.parameters + there * value,
                      static_cast<std::size_t>(info.size * value));
        if (info.frozen) return;
        const std::int64_t slope = size_of(info.gradient_dtype);
        std::memcpy(now.gradients + here * slope, old.gradients + there * slope,
                    static_cast<std::size_t>(info.size * slope));
      });
}

// One array of one bucket at a time on every rank, which takes what it owns
// now. whole: room for any.
void OptimizerCore::move_state(const Plan& from_plan,
                               std::span<const BucketWork> from,
                               const Storage& from_storage, std::byte* whole) {
  for (std::int64_t b = 0; b < from_plan.trained_buckets(); ++b) {
    const BucketWork& old = from[static_cast<std::size_t>(b)];
    const Bucket& bucket = from_plan.buckets()[static_cast<std::size_t>(b)];
    const ShardTable shards = from_plan.shards(b);
    const Range mine = shards.range(communicator->rank());
    const std::int64_t width = old.main_bytes;
    for (const MovedArray& array :
         arrays_of(old, from_storage.state_arrays(b))) {
      if (!mine.empty())
        std::memcpy(whole + mine.begin * width, array.from,
                    static_cast<std::size_t>(mine.size() * width));
      communicator->start_all_gather({whole, main_dtype(old.dtype), shards, -1})
          ->wait();
      for (std::int64_t p = bucket.parameters.begin; p < bucket.parameters.end;
           ++p) {
        const ParameterId id =
            from_plan.buffer_of(b).parameters[static_cast<std::size_t>(p)];
        const std::int64_t first = detail::in_bucket(from_plan, id).begin;
        std::byte* const to = array.in(bucket_of(id));
        if (to == nullptr) continue;  // its rule has no such array
        for (const Segment& segment : segments_of(id))
          std::memcpy(
              to + segment.in_shard.begin * width,
              whole + (first + segment.in_parameter.begin) * width,
              static_cast<std::size_t>(segment.in_parameter.size() * width));
      }
    }
  }
}

void OptimizerCore::rebuild_buckets() {
  wait_for_all_parameters();  // first: others may wait for this rank
  std::string problem;
  try {
    require_unmarked(rebuild.operation);
    if (communicator->rank() == 0 && readiness_order().empty())
      throw InvalidArgument(
          "rebuild_buckets: no order of readiness is known (rank 0 has marked "
          "no parameter in a step so far): mark parameters, step, then "
          "rebuild");
  } catch (const InvalidArgument& error) {
    problem = error.what();
  }
  throw_if_any(*communicator, rebuild, problem);

  const auto turn = progress_.take();
  fence(space, "kzero::rebuild");
  PlanOptions with_order = options.plan;
  with_order.ranks = communicator->size();
  with_order.order = observed_order();
  Plan new_plan;
  std::unique_ptr<Storage> new_storage;
  MatrixUpdates new_matrices;
  std::shared_ptr<void> room;
  try {
    new_plan = make_plan(parameters, with_order);
    new_storage = make_storage(new_plan, parameters, group_of_, rules);
    new_matrices = make_matrices(new_plan, parameters, group_of_, rules);
    room = communicator->allocate(largest_array(plan));
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    problem = concat("rebuild_buckets: memory for new buckets: ", error.what());
  }
  throw_if_any(*communicator, rebuild, problem);

  options.plan.order = std::move(with_order.order);
  try {
    const Plan old_plan = std::exchange(plan, std::move(new_plan));
    const std::vector<BucketWork> old_buckets = buckets;
    const std::unique_ptr<Storage> old_storage =
        std::exchange(storage, std::move(new_storage));
    matrices_ = std::move(new_matrices);
    index_segments();
    set_up_buckets();
    move_values(old_plan, old_buckets);
    if (options.share_parameters) communicator->barrier(rebuild);
    move_state(old_plan, old_buckets, *old_storage,
               static_cast<std::byte*>(room.get()));
    set_up_pipeline();
  } catch (const std::exception& error) {
    fail(error.what());
    throw;
  }
  forget_averaged();
}

}  // namespace kzero::detail
