// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "storage/storage.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <kzero/external_view.hpp>
#include <string>
#include <utility>

#include "comm/huge_pages.hpp"
#include "core/streams.hpp"
#include "layout/exchange_pieces.hpp"
#include "storage/kokkos_support.hpp"
#include "storage/strided_copy.hpp"

namespace kzero::detail {
namespace {

constexpr const char* parameter_label = "kzero::parameters";
constexpr const char* gradient_label = "kzero::gradients";
constexpr const char* staging_label = "kzero::staging";

// Kokkos aborts when a view is freed after Kokkos::finalize(). Such views are
// kept for good instead.
template <class Array>
void keep_array(Array& array) {
  keep_forever(new Array(std::move(array)));
}

std::shared_ptr<void> allocate_flat(Communicator& communicator,
                                    const char* label, std::int64_t bytes,
                                    const ExecutionSpace& space) {
  std::shared_ptr<void> memory = communicator.allocate(bytes);
  announce_allocation(label, memory.get(), bytes);
  touch_with_zeros(memory.get(), bytes, space);
  return memory;
}

void announce_freed(const char* label, const std::shared_ptr<void>& memory,
                    std::int64_t bytes) {
  if (memory) announce_deallocation(label, memory.get(), bytes);
}

}  // namespace

void zero_bytes(void* data, std::int64_t bytes, const ExecutionSpace& space) {
  constexpr std::int64_t block = std::int64_t{64} << 10;
  // Of less, something may still be in a cache when it is used.
  const bool is_large = bytes >= 4 * large_stream;
  auto* const begin = static_cast<std::byte*>(data);
  for_each_index("kzero::zero", space, 0, (bytes + block - 1) / block,
                 [=](std::int64_t i) {
                   const std::int64_t offset = i * block;
                   const std::int64_t count = std::min(block, bytes - offset);
                   if (is_large)
                     stream_zeros(begin + offset, count);
                   else
                     std::memset(begin + offset, 0,
                                 static_cast<std::size_t>(count));
                 });
}

void touch_with_zeros(void* data, std::int64_t bytes,
                      const ExecutionSpace& space) {
  const auto place = reinterpret_cast<std::uintptr_t>(data);
  constexpr auto size = static_cast<std::uintptr_t>(huge_page);
  auto* const first =
      static_cast<std::byte*>(data) + (size - place % size) % size;
  const std::int64_t rest = bytes - (first - static_cast<std::byte*>(data));
  for_each_index(
      "kzero::touch", space, 0, rest / huge_page,
      [=](std::int64_t i) { touch_huge_page(first + i * huge_page); });
  zero_bytes(data, bytes, space);
}

Storage::Storage(const Plan& plan, const ParameterSet& parameters,
                 StorageCommunicators communicators,
                 std::span<const std::size_t> state_arrays,
                 const ExecutionSpace& space, std::size_t first_buffer)
    : plan_(plan), rank_(communicators.gather.rank()) {
  if (communicators.share_parameters) sharing_ = communicators.gather.sharing();
  buffers_.resize(plan.buffers().size());
  const auto bucket_count = static_cast<std::int64_t>(plan.buckets().size());
  for (std::int64_t i = 0; i < bucket_count; ++i) {
    const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(i)];
    auto& buffer = buffers_[static_cast<std::size_t>(bucket.buffer)];
    shard_offsets_.push_back(buffer.shard_elements);
    buffer.shard_elements += plan.shards(i).size(rank_);
  }
  // First: it may be collective, and nothing else has failed on one rank yet.
  for (std::size_t i = first_buffer; i < buffers_.size(); ++i)
    allocate_parameters(i, communicators, space);
  for (std::size_t i = first_buffer; i < buffers_.size(); ++i)
    allocate(i, communicators, state_arrays[i], space);
  memory_ = plan.memory(rank_, state_arrays);
  memory_.parameters =
      (memory_.parameters + sharing_.ranks - 1) / sharing_.ranks;
  memory_.staging = 2 * detail::gather_piece_bytes(plan);
  if (memory_.staging > 0)
    gather_pieces_ = allocate_flat(communicators.gather, staging_label,
                                   memory_.staging, space);
  cut_gradients(parameters);
}

void Storage::take(Storage& more) noexcept {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    std::swap(more.buffers_[i], buffers_[i]);
  std::swap(buffers_, more.buffers_);
  std::swap(plan_, more.plan_);
  std::swap(shard_offsets_, more.shard_offsets_);
  std::swap(gradient_blocks_, more.gradient_blocks_);
  std::swap(gather_pieces_, more.gather_pieces_);
  std::swap(memory_, more.memory_);
}

void Storage::cut_gradients(const ParameterSet& parameters) {
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    if (!info.external || info.frozen || info.storage.index != i) continue;
    const ExternalArray& array = info.external->gradient;
    const std::int64_t block = block_elements(array);
    for (std::int64_t begin = 0; begin < info.size; begin += block)
      gradient_blocks_.push_back(
          {&array, {begin, std::min(begin + block, info.size)}});
  }
}

void Storage::allocate_parameters(std::size_t i,
                                  const StorageCommunicators& communicators,
                                  const ExecutionSpace& space) {
  const Buffer& layout = plan_.buffers()[i];
  BufferStorage& buffer = buffers_[i];
  buffer.bytes_parameter = size_of(layout.dtype);
  if (layout.external) return;
  const std::int64_t bytes = layout.size * buffer.bytes_parameter;
  if (!communicators.share_parameters) {
    buffer.parameters =
        allocate_flat(communicators.gather, parameter_label, bytes, space);
    return;
  }
  buffer.parameters = communicators.gather.allocate_common(bytes);
  if (!counts_parameters()) return;
  announce_allocation(parameter_label, buffer.parameters.get(), bytes);
  touch_with_zeros(buffer.parameters.get(), bytes, space);
}

void Storage::allocate(std::size_t i, const StorageCommunicators& communicators,
                       std::size_t state_arrays, const ExecutionSpace& space) {
  const Buffer& layout = plan_.buffers()[i];
  BufferStorage& buffer = buffers_[i];
  buffer.bytes_gradient = size_of(layout.gradient_dtype);
  buffer.bytes_main = size_of(main_dtype(layout.dtype));
  const std::int64_t shard_bytes = buffer.shard_elements * buffer.bytes_main;
  if (layout.frozen) return;
  buffer.gradients = allocate_flat(communicators.reduce, gradient_label,
                                   layout.size * buffer.bytes_gradient, space);
  if (layout.has_averaged())
    buffer.averaged = allocate_shard("kzero::averaged", shard_bytes, 0, space);
  if (layout.has_main())
    buffer.main = allocate_shard("kzero::main", shard_bytes, 1, space);
  for (std::size_t array = 0; array < state_arrays; ++array)
    buffer.state.push_back(
        allocate_shard("kzero::moments", shard_bytes, 2 + array, space));
}

Storage::~Storage() {
  if (!Kokkos::is_initialized()) {
    for (BufferStorage& buffer : buffers_) {
      keep_array(buffer.averaged.memory);
      keep_array(buffer.main.memory);
      for (Shard& shard : buffer.state) keep_array(shard.memory);
    }
    return;
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const BufferStorage& buffer = buffers_[i];
    const std::int64_t size = plan_.buffers()[i].size;
    if (counts_parameters())
      announce_freed(parameter_label, buffer.parameters,
                     size * buffer.bytes_parameter);
    announce_freed(gradient_label, buffer.gradients,
                   size * buffer.bytes_gradient);
  }
  announce_freed(staging_label, gather_pieces_, memory_.staging);
}

// Large arrays begin at different places of a page: in the first cache,
// elements of one place in different arrays else meet in one set, and loads
// wait for stores whose addresses are alike in the lower bits.
Storage::Shard Storage::allocate_shard(const char* label, std::int64_t bytes,
                                       std::size_t which,
                                       const ExecutionSpace& space) const {
  constexpr std::int64_t large = std::int64_t{1} << 20;
  constexpr std::size_t page = 4096;
  constexpr std::size_t step = 1024;
  const std::size_t shift = bytes < large ? 0 : which * step % page;
  Shard shard;
  shard.memory =
      Array(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string(label)),
            (static_cast<std::size_t>(bytes) + shift + 7) / 8);
  shard.data = reinterpret_cast<std::byte*>(shard.memory.data()) + shift;
  ask_for_huge_pages(shard.data, bytes);
  zero_bytes(shard.data, bytes, space);
  return shard;
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
  if (!buffer.parameters) return nullptr;
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
  if (!buffer.parameters) return nullptr;
  return static_cast<std::byte*>(buffer.parameters.get()) +
         shard_in_buffer(bucket).begin * buffer.bytes_parameter;
}

std::byte* Storage::averaged_shard(std::int64_t bucket) const {
  const BufferStorage& buffer = buffer_of(bucket);
  if (buffer.bytes_gradient == buffer.bytes_main)
    return static_cast<std::byte*>(buffer.gradients.get()) +
           shard_in_buffer(bucket).begin * buffer.bytes_gradient;
  return buffer.averaged.data +
         shard_offsets_[static_cast<std::size_t>(bucket)] * buffer.bytes_main;
}

std::byte* Storage::main_shard(std::int64_t bucket) const {
  const BufferStorage& buffer = buffer_of(bucket);
  if (buffer.parameters && buffer.bytes_parameter == buffer.bytes_main)
    return parameter_shard(bucket);
  return buffer.main.data +
         shard_offsets_[static_cast<std::size_t>(bucket)] * buffer.bytes_main;
}

std::byte* Storage::state_shard(std::int64_t bucket, std::size_t array) const {
  const BufferStorage& buffer = buffer_of(bucket);
  return buffer.state[array].data +
         shard_offsets_[static_cast<std::size_t>(bucket)] * buffer.bytes_main;
}

std::size_t Storage::state_arrays(std::int64_t bucket) const {
  return buffer_of(bucket).state.size();
}

std::byte* Storage::gather_piece(int which) const {
  if (!gather_pieces_) return nullptr;
  return static_cast<std::byte*>(gather_pieces_.get()) +
         which * gather_piece_bytes();
}

void Storage::zero_gradient_buckets(const ExecutionSpace& space) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].gradients)
      zero_bytes(buffers_[i].gradients.get(),
                 plan_.buffers()[i].size * buffers_[i].bytes_gradient, space);
}

void Storage::zero_gradients(const ExecutionSpace& space) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].gradients && !plan_.buffers()[i].external)
      zero_bytes(buffers_[i].gradients.get(),
                 plan_.buffers()[i].size * buffers_[i].bytes_gradient, space);
  for_each_index("kzero::zero", space, 0, std::ssize(gradient_blocks_),
                 [this](std::int64_t i) {
                   const auto& block =
                       gradient_blocks_[static_cast<std::size_t>(i)];
                   fill_zero(*block.array, block.range);
                 });
}

}  // namespace kzero::detail
