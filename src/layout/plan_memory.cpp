// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <kzero/plan.hpp>

#include "core/message.hpp"
#include "layout/exchange_pieces.hpp"

namespace kzero {
namespace {

/// What the communicator mpi takes a reduction's pieces in: two slots for the
/// largest of them.
std::int64_t reduction_staging(const Plan& plan, int rank) {
  std::int64_t slot = 0;
  const std::int64_t peers = plan.ranks() - 1;
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
    const std::int64_t element = size_of(plan.buffer_of(b).gradient_dtype);
    // No piece is larger than the first one.
    const Range first =
        detail::reduction_pieces(plan, b).of(0, plan.shards(b).size(rank));
    slot = std::max(slot, peers * detail::part_stride(first.size() * element));
  }
  return 2 * slot;
}

}  // namespace

Memory Plan::memory(int rank, std::span<const std::size_t> state_arrays) const {
  if (rank < 0 || rank >= ranks_)
    throw InvalidArgument(
        detail::concat("no such rank in the plan (expected a rank below ",
                       ranks_, ", got ", rank, "): use a rank of its group"));
  if (state_arrays.size() != buffers_.size())
    throw InvalidArgument(detail::concat(
        "state_arrays has another length (expected ", buffers_.size(),
        ", one for each buffer of the plan, got ", state_arrays.size(),
        "): give a number for each, or one for all"));
  Memory memory;
  std::vector<std::int64_t> shard_elements(buffers_.size(), 0);
  for (std::int64_t b = 0; b < std::ssize(buckets_); ++b) {
    const int buffer = buckets_[static_cast<std::size_t>(b)].buffer;
    shard_elements[static_cast<std::size_t>(buffer)] += shards(b).size(rank);
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    const DType main = main_dtype(buffer.dtype);
    const std::int64_t shard_bytes = shard_elements[i] * size_of(main);
    if (!buffer.external)
      memory.parameters += buffer.size * size_of(buffer.dtype);
    if (buffer.frozen) continue;
    memory.gradients += buffer.size * size_of(buffer.gradient_dtype);
    if (buffer.has_averaged()) memory.averaged += shard_bytes;
    if (buffer.has_main()) memory.main += shard_bytes;
    memory.moments += static_cast<std::int64_t>(state_arrays[i]) * shard_bytes;
  }
  memory.staging =
      reduction_staging(*this, rank) + 2 * detail::gather_piece_bytes(*this);
  return memory;
}

Memory Plan::memory(int rank, std::size_t state_arrays) const {
  const std::vector<std::size_t> all(buffers_.size(), state_arrays);
  return memory(rank, all);
}

}  // namespace kzero
