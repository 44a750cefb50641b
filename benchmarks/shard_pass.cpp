// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "shard_pass.hpp"

#include <ctime>
#include <kzero/error.hpp>
#include <utility>

#include "probes.hpp"
#include "rounds.hpp"

namespace kzero::bench {
namespace {

using detail::BucketWork;

// From -1 to 1, of no pattern that matters to a processor.
double number(std::int64_t i) {
  const std::uint64_t mixed = static_cast<std::uint64_t>(i) * 2654435761u >> 7;
  return static_cast<double>(mixed % 2001) / 1000.0 - 1.0;
}

template <class T, class F>
void fill_values(std::byte* array, std::int64_t count, const F& value_of) {
  T* const values = reinterpret_cast<T*>(array);
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == 8)
      values[i] = value_of(i);
    else
      values[i] = static_cast<T>(static_cast<float>(value_of(i)));
  }
}

template <class F>
void fill_array(DType dtype, std::byte* array, std::int64_t count,
                const F& value_of) {
  switch (dtype) {
    case DType::float16:
      return fill_values<float16>(array, count, value_of);
    case DType::bfloat16:
      return fill_values<bfloat16>(array, count, value_of);
    case DType::float32:
      return fill_values<float>(array, count, value_of);
    case DType::float64:
      return fill_values<double>(array, count, value_of);
  }
}

Plan one_rank_plan(const ParameterSet& model) {
  PlanOptions options;
  options.ranks = 1;
  options.bucket_bytes = PlanOptions::unlimited;
  return make_plan(model, options);
}

std::byte* at(std::byte* base, std::int64_t element, std::int64_t bytes) {
  return base == nullptr ? nullptr : base + element * bytes;
}

}  // namespace

int kokkos_threads() {
  return static_cast<int>(ExecutionSpace().concurrency());
}

std::vector<Workers> all_workers() {
  if (kokkos_threads() == 1) return {Workers::one};
  return {Workers::one, Workers::all};
}

std::string name_of(Workers workers) {
  const int threads = workers == Workers::one ? 1 : kokkos_threads();
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

double seconds_of(Workers workers, const std::function<void()>& call) {
  if (workers == Workers::all) return seconds_of(call);
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  call();
  return now() - begin;
}

ShardPass::ShardPass(ParameterSet model)
    : model_(std::move(model)),
      communicator_(make_communicator(MPI_COMM_SELF)),
      plan_(one_rank_plan(model_)),
      rules_({AdamW()}) {
  const std::vector<std::size_t> arrays(plan_.buffers().size(), 2);
  storage_ = std::make_shared<detail::Storage>(
      plan_, model_,
      detail::StorageCommunicators{*communicator_, *communicator_}, arrays,
      space_);
  for (std::int64_t i = 0; i < plan_.trained_buckets(); ++i) {
    const Buffer& buffer = plan_.buffer_of(i);
    BucketWork bucket;
    bucket.dtype = buffer.dtype;
    bucket.update_dtype = buffer.dtype;
    bucket.gradient_dtype = buffer.gradient_dtype;
    bucket.main_bytes = size_of(main_dtype(buffer.dtype));
    bucket.gradients = storage_->gradient_bucket(i);
    bucket.averaged = storage_->averaged_shard(i);
    bucket.main = storage_->main_shard(i);
    if (size_of(buffer.dtype) == 2)
      bucket.parameter_shard = storage_->parameter_shard(i);
    for (std::size_t array = 0; array < 2; ++array)
      bucket.state[array] = storage_->state_shard(i, array);
    buckets_.push_back(bucket);
  }
  prepare();
  fill();
}

ShardPass::ShardPass(ParameterSet model, const ShardPass& memory)
    : model_(std::move(model)),
      communicator_(memory.communicator_),
      plan_(one_rank_plan(model_)),
      rules_(memory.rules_),
      storage_(memory.storage_),
      buckets_(memory.buckets_) {
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (elements_of(i) != memory.elements_of(i))
      throw InvalidArgument("passes in one memory must have one size");
  prepare();
}

void ShardPass::prepare() {
  tiles_ = detail::TileTable(plan_, plan_.segments(0), 0);
  const auto parameters = static_cast<std::size_t>(model_.size());
  const std::vector<std::int32_t> group_of(parameters, 0);
  std::vector<ParameterInfo> infos;
  for (std::int64_t i = 0; i < model_.size(); ++i) infos.push_back(model_[{i}]);
  classes_ = detail::UpdateClasses(infos, group_of);
  // Late enough for corrections to be numbers like others.
  for (int i = 0; i < 10; ++i) classes_.advance();
  classes_.prepare(rules_);
  counted_.assign(parameters, 1);
  totals_.resize(tiles_.tiles().size());
}

ParameterSet ShardPass::flat_model(DType dtype, std::int64_t elements) {
  ParameterSet model;
  ParameterOptions options;
  options.dtype = dtype;
  model.add("flat", {elements}, options);
  return model;
}

std::int64_t ShardPass::elements_of(std::size_t bucket) const {
  return plan_.shards(static_cast<std::int64_t>(bucket)).size(0);
}

void ShardPass::fill() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const BucketWork& bucket = buckets_[i];
    const std::int64_t count = elements_of(i);
    const DType main = main_dtype(bucket.dtype);
    fill_array(bucket.gradient_dtype, bucket.gradients, count, number);
    if (bucket.averaged != bucket.gradients)
      fill_array(main, bucket.averaged, count, number);
    fill_array(main, bucket.main, count, number);
    fill_array(main, bucket.state[0], count, number);
    fill_array(main, bucket.state[1], count,
               [](std::int64_t k) { return 0.1 + 0.01 * number(k); });
  }
}

void ShardPass::fill_gradients(double value) {
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    fill_array(main_dtype(buckets_[i].dtype), buckets_[i].averaged,
               elements_of(i), [=](std::int64_t) { return value; });
}

void ShardPass::fill_moments(double value) {
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    for (std::size_t array = 0; array < 2; ++array)
      fill_array(main_dtype(buckets_[i].dtype), buckets_[i].state[array],
                 elements_of(i), [=](std::int64_t) { return value; });
}

detail::Hands ShardPass::hands(Workers workers) const {
  return workers == Workers::one ? detail::Hands() : detail::Hands(space_);
}

detail::TileWork ShardPass::work(double clip) {
  return {detail::host_kernels(),
          tiles_,
          buckets_,
          classes_,
          marks_,
          counted_,
          totals_,
          trust_,
          1.0,
          clip};
}

void ShardPass::sum(Workers workers) {
  const detail::TileWork tile_work = work(1.0);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Contribution part{buckets_[i].gradients, 0, 1};
    const Contributions contributions{
        std::span(&part, 1), buckets_[i].gradient_dtype, {0, elements_of(i)}};
    const Range range = tiles_.tiles_of(static_cast<std::int64_t>(i));
    hands(workers).for_each(
        "kzero::sum", range.begin, range.end,
        [&](std::int64_t tile) { tile_work.sum(tile, contributions); });
  }
}

void ShardPass::update(Workers workers, double clip) {
  const detail::TileWork tile_work = work(clip);
  hands(workers).for_each("kzero::update", 0, std::ssize(tiles_.tiles()),
                          [&](std::int64_t tile) { tile_work.update(tile); });
}

void ShardPass::sum_and_update(Workers workers) {
  const detail::TileWork tile_work = work(1.0);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Contribution part{buckets_[i].gradients, 0, 1};
    const Contributions contributions{
        std::span(&part, 1), buckets_[i].gradient_dtype, {0, elements_of(i)}};
    hands(workers).for_each_block(
        "kzero::update", tiles_.tiles_of(static_cast<std::int64_t>(i)),
        detail::TileWork::tiles_at_a_time(contributions),
        [&](Range some) { tile_work.sum_and_update(some, contributions); });
  }
}

void ShardPass::probe(Workers workers) {
  const Probes& loops = probes();
  for_each_tile(workers, [&](const BucketWork& bucket, std::int64_t begin,
                             std::int64_t count) {
    detail::UpdateTile tile;
    tile.gradient = at(bucket.averaged, begin, bucket.main_bytes);
    tile.main = at(bucket.main, begin, bucket.main_bytes);
    tile.parameter = at(bucket.parameter_shard, begin, 2);
    for (std::size_t array = 0; array < 2; ++array)
      tile.state[array] = at(bucket.state[array], begin, bucket.main_bytes);
    tile.count = count;
    loops.update[static_cast<std::size_t>(bucket.update_dtype)](tile);
  });
}

}  // namespace kzero::bench
