// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "collectives.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <kzero/error.hpp>
#include <utility>

#include "kernels/kernels.hpp"
#include "storage/storage.hpp"
#include "streams.hpp"

namespace kzero::bench {

namespace {

/// Elements of a shard, so that all ranks' together have these bytes.
std::int64_t shard_of(const Communicator& communicator, std::int64_t bytes,
                      std::int64_t element_bytes) {
  constexpr std::int64_t alignment = 64;  // elements, as in buckets
  const std::int64_t unit = alignment * communicator.size();
  const std::int64_t elements = bytes / element_bytes;
  return std::max<std::int64_t>(1, (elements + unit - 1) / unit) * alignment;
}

}  // namespace

ReduceScatter::ReduceScatter(std::shared_ptr<Communicator> communicator,
                             std::int64_t bytes)
    : communicator_(std::move(communicator)),
      shard_elements_(shard_of(*communicator_, bytes, 4)) {
  const std::int64_t count = shard_elements_ * communicator_->size();
  bucket_ = communicator_->allocate(count * 4);
  detail::touch_with_zeros(bucket_.get(), count * 4, ExecutionSpace());
  own_bucket_.resize(static_cast<std::size_t>(count));
  // Sums of such numbers are exact in any order.
  for (std::int64_t i = 0; i < count; ++i)
    own_bucket_[static_cast<std::size_t>(i)] =
        static_cast<float>(i % 1021 + communicator_->rank());
  std::memcpy(bucket_.get(), own_bucket_.data(),
              static_cast<std::size_t>(count) * 4);
  shard_.resize(static_cast<std::size_t>(shard_elements_));
  for (int part = 0; part < communicator_->size(); ++part)
    sources_.push_back(own_bucket_.data() + part * shard_elements_);
  check();
}

void ReduceScatter::check() {
  with_library();
  const HugeVector<float> sum = shard_;
  std::fill(shard_.begin(), shard_.end(), 0.0F);
  with_mpi();
  if (sum != shard_)
    throw Error("the library's reduce-scatter and MPI's differ");
}

void ReduceScatter::with_library() {
  const ReductionTicket ticket = communicator_->start_reduce(
      {.bucket = bucket_.get(),
       .dtype = DType::float32,
       .shards = ShardTable::uniform(communicator_->size(), shard_elements_),
       .piece_granularity = 64,
       .sum = detail::ordered_sum});
  while (const Contributions* piece = ticket->next()) {
    detail::ordered_sum(piece->parts, piece->dtype, piece->range.size(),
                        shard_.data() + piece->range.begin);
    // Nothing is staged: they are the ranks' own buckets, and stay there.
    if (piece->range.size() == shard_elements_ &&
        communicator_->staging_bytes() == 0 &&
        piece->parts.size() == sources_.size())
      std::transform(piece->parts.begin(), piece->parts.end(), sources_.begin(),
                     [](const Contribution& part) { return part.data; });
  }
  ticket->wait();
}

void ReduceScatter::with_mpi() {
  MPI_Reduce_scatter_block(own_bucket_.data(), shard_.data(),
                           static_cast<int>(shard_elements_), MPI_FLOAT,
                           MPI_SUM, MPI_COMM_WORLD);
}

void ReduceScatter::with_loop() {
  move_as_sum(sources_, shard_elements_, shard_.data());
}

AllGather::AllGather(std::shared_ptr<Communicator> communicator,
                     std::int64_t bytes)
    : communicator_(std::move(communicator)),
      shard_elements_(shard_of(*communicator_, bytes, 2)) {
  const std::int64_t count = shard_elements_ * communicator_->size();
  bucket_ = communicator_->allocate(count * 2);
  detail::touch_with_zeros(bucket_.get(), count * 2, ExecutionSpace());
  own_bucket_.resize(static_cast<std::size_t>(count));
  auto* const mine = static_cast<std::uint16_t*>(bucket_.get());
  for (std::int64_t i = communicator_->rank() * shard_elements_;
       i < (communicator_->rank() + 1) * shard_elements_; ++i)
    mine[i] = own_bucket_[static_cast<std::size_t>(i)] =
        static_cast<std::uint16_t>(i % 65521);
  check();
}

void AllGather::check() {
  with_library();
  with_mpi();
  if (std::memcmp(bucket_.get(), own_bucket_.data(), own_bucket_.size() * 2) !=
      0)
    throw Error("the library's all-gather and MPI's differ");
}

void AllGather::with_library() {
  communicator_
      ->start_all_gather({.bucket = bucket_.get(),
                          .dtype = DType::bfloat16,
                          .shards = ShardTable::uniform(communicator_->size(),
                                                        shard_elements_)})
      ->wait();
}

void AllGather::with_mpi() {
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, own_bucket_.data(),
                static_cast<int>(shard_elements_ * 2), MPI_BYTE,
                MPI_COMM_WORLD);
}

}  // namespace kzero::bench
