// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/staged_piece.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

/// Main parameters in the parameters' own type.
void cast(const std::byte* main, DType dtype, std::byte* out,
          std::int64_t count, const Hands& hands) {
  const std::int64_t bytes = size_of(dtype);
  const std::int64_t main_bytes = size_of(main_dtype(dtype));
  const HostKernels& kernels = host_kernels();
  const std::int64_t blocks = (count + tile_elements - 1) / tile_elements;
  hands.for_each("kzero::cast", 0, blocks, [&](std::int64_t block) {
    const std::int64_t begin = block * tile_elements;
    const std::int64_t size = std::min(tile_elements, count - begin);
    const std::byte* const from = main + begin * main_bytes;
    std::byte* const to = out + begin * bytes;
    if (bytes == main_bytes)
      std::memcpy(to, from, static_cast<std::size_t>(size * bytes));
    else
      kernels.narrow[static_cast<std::size_t>(dtype)](
          reinterpret_cast<const float*>(from), to, size);
  });
}

}  // namespace

StagedPiece::StagedPiece(std::byte* memory, int ranks)
    : memory_(memory),
      offsets_(static_cast<std::size_t>(ranks) + 1),
      ranges_(static_cast<std::size_t>(ranks)) {}

Ticket StagedPiece::start(Communicator& communicator,
                          const ExternalBucket& bucket, const BucketWork& work,
                          const Pieces& pieces, std::int64_t piece,
                          const Hands& hands) {
  const ShardTable shards = bucket.plan.shards(bucket.index);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Range shard = shards.range(rank);
    const Range part = pieces.of(piece, shard.size());
    ranges_[r] = shift(part, shard.begin);
    offsets_[r + 1] = offsets_[r] + part.size();
  }
  element_bytes_ = size_of(work.dtype);
  const Range mine = pieces.of(piece, shards.size(communicator.rank()));
  const auto me = static_cast<std::size_t>(communicator.rank());
  cast(work.main + mine.begin * work.main_bytes, work.dtype,
       memory_ + offsets_[me] * element_bytes_, mine.size(), hands);
  return communicator.start_all_gather(
      {memory_, work.dtype, ShardTable(offsets_), bucket.index});
}

void StagedPiece::finish(const ExternalBucket& bucket,
                         const Hands& hands) const {
  for (std::size_t r = 0; r < ranges_.size(); ++r) {
    const std::byte* const from = memory_ + offsets_[r] * element_bytes_;
    if (hands.space() != nullptr)
      write_values(*hands.space(), bucket, ranges_[r], from);
    else
      write_values(bucket, ranges_[r], from);
  }
}

}  // namespace kzero::detail
