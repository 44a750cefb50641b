// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "storage/storage.hpp"

#include <algorithm>
#include <cstring>
#include <kzero/external_view.hpp>
#include <string>
#include <utility>

#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

constexpr const char* parameter_label = "kzero::parameters";
constexpr const char* gradient_label = "kzero::gradients";

// Kokkos aborts when a view is freed after Kokkos::finalize(). Such views are
// kept for good instead.
template <class Array>
void keep_array(Array& array) {
  keep_forever(new Array(std::move(array)));
}

}  // namespace

void zero_bytes(void* data, std::int64_t bytes, const ExecutionSpace& space) {
  constexpr std::int64_t block = std::int64_t{64} << 10;
  auto* const begin = static_cast<std::byte*>(data);
  for_each_index(
      "kzero::zero", space, 0, (bytes + block - 1) / block,
      [=](std::int64_t i) {
        const std::int64_t offset = i * block;
        std::memset(begin + offset, 0,
                    static_cast<std::size_t>(std::min(block, bytes - offset)));
      });
}

Storage::Storage(const Plan& plan, Communicator& gathers,
                 Communicator& reductions,
                 std::span<const std::size_t> state_arrays,
                 const ExecutionSpace& space)
    : plan_(plan), rank_(gathers.rank()) {
  buffers_.resize(plan.buffers().size());
  const auto bucket_count = static_cast<std::int64_t>(plan.buckets().size());
  for (std::int64_t i = 0; i < bucket_count; ++i) {
    const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(i)];
    auto& buffer = buffers_[static_cast<std::size_t>(bucket.buffer)];
    shard_offsets_.push_back(buffer.shard_elements);
    buffer.shard_elements += plan.shards(i).size(rank_);
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& layout = plan.buffers()[i];
    BufferStorage& buffer = buffers_[i];
    buffer.bytes_parameter = size_of(layout.dtype);
    buffer.bytes_gradient = size_of(layout.gradient_dtype);
    buffer.bytes_main = size_of(main_dtype(layout.dtype));
    const std::int64_t parameter_bytes = layout.size * buffer.bytes_parameter;
    const std::int64_t gradient_bytes = layout.size * buffer.bytes_gradient;
    const std::int64_t shard_bytes = buffer.shard_elements * buffer.bytes_main;
    buffer.parameters = allocate_flat(gathers, parameter_label, parameter_bytes, space);
    memory_.parameters += parameter_bytes;
    if (layout.frozen) continue;
    buffer.gradients = allocate_flat(reductions, gradient_label, gradient_bytes, space);
    memory_.gradients += gradient_bytes;
    if (buffer.bytes_gradient != buffer.bytes_main) {
      buffer.averaged = allocate_shard("kzero::averaged", shard_bytes, space);
      memory_.averaged += shard_bytes;
    }
    if (buffer.bytes_parameter != buffer.bytes_main) {
      buffer.main = allocate_shard("kzero::main", shard_bytes, space);
      memory_.main += shard_bytes;
    }
    for (std::size_t array = 0; array < state_arrays[i]; ++array) {
      buffer.state.push_back(
          allocate_shard("kzero::moments", shard_bytes, space));
      memory_.moments += shard_bytes;
    }
  }
}

Storage::~Storage() {
  const bool kokkos_is_gone = !Kokkos::is_initialized();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    BufferStorage& buffer = buffers_[i];
    if (kokkos_is_gone) {
      keep_array(buffer.averaged);
      keep_array(buffer.main);
      for (Array& array : buffer.state) keep_array(array);
      continue;
    }
    const std::int64_t size = plan_.buffers()[i].size;
    if (buffer.parameters)
      announce_deallocation(parameter_label, buffer.parameters.get(),
                            size * buffer.bytes_parameter);
    if (buffer.gradients)
      announce_deallocation(gradient_label, buffer.gradients.get(),
                            size * buffer.bytes_gradient);
  }
}

std::shared_ptr<void> Storage::allocate_flat(
    Communicator& communicator, const char* label, std::int64_t bytes,
    const ExecutionSpace& space) const {
  std::shared_ptr<void> memory = communicator.allocate(bytes);
  announce_allocation(label, memory.get(), bytes);
  zero_bytes(memory.get(), bytes, space);
  return memory;
}

Storage::Array Storage::allocate_shard(const char* label, std::int64_t bytes,
                                       const ExecutionSpace& space) const {
  Array array(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string(label)),
      static_cast<std::size_t>((bytes + 7) / 8));
  zero_bytes(array.data(), bytes, space);
  return array;
}

const Storage::BufferStorage& Storage::buffer_of(std::int64_t bucket) const {
  const auto i = static_cast<std::size_t>(bucket);
  return buffers_[static_cast<std::size_t>(plan_.buckets()[i].buffer)];
}

Range Storage::shard_in_buffer(std::int64_t bucket) const {
  const Range shard = plan_.shards(bucket).range(rank_);
  return shift(shard,
               plan_.buckets()[static_cast<std::size_t>(bucket)].range.begin);
}

std::byte* Storage::parameter_bucket(std::int64_t bucket) const {
  const BufferStorage& buffer = buffer_of(bucket);
  const Range range = plan_.buckets()[static_cast<std::size_t>(bucket)].range;
  return static_cast<std::byte*>(buffer.parameters.get()) +
         range.begin * buffer.bytes_parameter;
}

std::byte* Storage::gradient_bucket(std::int64_t bucket) const {
  const BufferStorage& buffer = buffer_of(bucket);
  const Range range = plan_.buckets()[static_cast<std::size_t>(bucket)].range;
  return static_cast<std::byte*>(buffer.gradients.get()) +
         range.begin * buffer.bytes_gradient;
}

std::byte* Storage::parameter_shard(std::int64_t bucket) const {
  const BufferStorage& buffer = buffer_of(bucket);
  return static_cast<std::byte*>(buffer.parameters.get()) +
         shard_in_buffer(bucket).begin * buffer.bytes_parameter;
}

std::byte* Storage::averaged_shard(std::int64_t bucket) const {
  const BufferStorage& buffer = buffer_of(bucket);
  if (buffer.bytes_gradient == buffer.bytes_main)
    return static_cast<std::byte*>(buffer.gradients.get()) +
           shard_in_buffer(bucket).begin * buffer.bytes_gradient;
  return reinterpret_cast<std::byte*>(buffer.averaged.data()) +
         shard_offsets_[static_cast<std::size_t>(bucket)] * buffer.bytes_main;
}

std::byte* Storage::main_shard(std::int64_t bucket) const {
  const BufferStorage& buffer = buffer_of(bucket);
  if (buffer.bytes_parameter == buffer.bytes_main)
    return parameter_shard(bucket);
  return reinterpret_cast<std::byte*>(buffer.main.data()) +
         shard_offsets_[static_cast<std::size_t>(bucket)] * buffer.bytes_main;
}

std::byte* Storage::state_shard(std::int64_t bucket, std::size_t array) const {
  const BufferStorage& buffer = buffer_of(bucket);
  return reinterpret_cast<std::byte*>(buffer.state[array].data()) +
         shard_offsets_[static_cast<std::size_t>(bucket)] * buffer.bytes_main;
}

std::size_t Storage::state_arrays(std::int64_t bucket) const {
  return buffer_of(bucket).state.size();
}

void Storage::zero_gradients(const ExecutionSpace& space) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].gradients)
      zero_bytes(buffers_[i].gradients.get(),
                 plan_.buffers()[i].size * buffers_[i].bytes_gradient, space);
}

}  // namespace kzero::detail
