// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <array>
#include <kzero/plan.hpp>

#include "core/message.hpp"
#include "layout/exchange_pieces.hpp"

namespace kzero {
namespace {

/// What the communicator mpi takes a reduction's pieces in: two slots in turn,
/// each as large as the largest piece it has held.
std::int64_t reduction_staging(const Plan& plan, int rank) {
  std::array<std::int64_t, 2> slots = {};
  const std::int64_t peers = plan.ranks() - 1;
  std::int64_t turn = 0;
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
    const int buffer = plan.buckets()[static_cast<std::size_t>(b)].buffer;
    const std::int64_t element = size_of(
        plan.buffers()[static_cast<std::size_t>(buffer)].gradient_dtype);
    const std::int64_t shard = plan.shards(b).size(rank);
    const detail::Pieces pieces = detail::reduction_pieces(plan, b);
    const std::int64_t count = pieces.count_in(shard);
    // No piece is larger than the first one, or the second one.
    for (std::int64_t k = 0; k < std::min(count, std::int64_t{2}); ++k) {
      const std::int64_t bytes = pieces.of(k, shard).size() * element;
      const std::int64_t stride = (bytes + 63) / 64 * 64;
      auto& slot = slots[static_cast<std::size_t>((turn + k) % 2)];
      slot = std::max(slot, peers * stride);
    }
    // While an empty bucket has its turn, both slots become free.
    turn = count == 0 ? 0 : (turn + count) % 2;
  }
  return slots[0] + slots[1];
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
