// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <utility>

#include "comm/argument_checks.hpp"
#include "comm/mpi_reduction.hpp"
#include "comm/pool.hpp"

namespace kzero::detail {

MpiReductions::MpiReductions(MpiLink& link)
    : link_(link), slots_{Slot(link), Slot(link)} {}

ReductionTicket MpiReductions::start(const ReduceArguments& arguments,
                                     const BlockRoutes& routes,
                                     std::shared_ptr<void> owner) {
  MpiReduction& reduction = prepare(arguments, routes, nullptr);
  const auto* const bucket = static_cast<const std::byte*>(arguments.bucket);
  reduction.set_buckets({&bucket, 1});
  reduction.owner_ = std::move(owner);
  return ReductionTicket(&reduction);
}

MpiReduction& MpiReductions::prepare(const ReduceArguments& arguments,
                                     const BlockRoutes& routes,
                                     std::shared_ptr<void> owner) {
  Activity activity =
      link_.begin(Collective::reduce, subject_of(arguments), arguments.index);
  activity.relayed = routes.is_relayed;
  MpiReduction& reduction = take_free(pool_, *this);
  reduction.routes_ = &routes;
  reduction.has_buckets_ = false;
  reduction.buckets_.reserve(routes.here.size());
  reduction.arguments_ = arguments;
  reduction.activity_ = activity;
  reduction.pieces_ = cut_reduction(
      arguments.shards, {.element_bytes = size_of(arguments.dtype),
                         .bytes = arguments.piece_bytes,
                         .granularity = arguments.piece_granularity});
  reduction.own_count_ =
      reduction.pieces_.count_in(arguments.shards.size(link_.rank()));
  reduction.posted_ = 0;
  reduction.given_ = 0;
  reduction.finished_ = 0;
  reduction.holds_ = false;
  reduction.ended_ = false;
  reduction.waited_ = false;
  started_.push_back(&reduction);
  reserve_slots(reduction);
  reduction.owner_ = std::move(owner);
  return reduction;
}

namespace {

std::int64_t bytes_of(const RankBlock& block, DType dtype,
                      std::int64_t elements) {
  return elements * size_of(block.rank_count == 1 ? dtype : main_dtype(dtype));
}

}  // namespace

// Both slots get room for the largest piece that there was, when they are free:
// which of them takes it is a matter of time.
void MpiReductions::reserve_slots(const MpiReduction& reduction) {
  const ReduceArguments& arguments = reduction.arguments_;
  const BlockRoutes& routes = *reduction.routes_;
  // No piece is larger than the first one.
  const auto first_bytes = [&](const RankBlock& block, int owner) {
    const std::int64_t shard = arguments.shards.size(owner);
    return part_stride(bytes_of(block, arguments.dtype,
                                reduction.pieces_.of(0, shard).size()));
  };
  std::int64_t received = 0;
  for (const std::size_t i : routes.incoming)
    received += first_bytes(routes.parts[i], link_.rank());
  std::int64_t summed = 0;
  std::size_t addends = 0;
  for (const RankBlock& block : routes.outgoing) {
    if (block.rank_count == 1) continue;
    summed += first_bytes(block, block.peer);
    addends = std::max(addends, static_cast<std::size_t>(block.rank_count));
  }
  addends_.reserve(addends);
  slot_bytes_ = std::max(slot_bytes_, received);
  sum_bytes_ = std::max(sum_bytes_, summed);
  part_count_ = std::max(part_count_, routes.parts.size());
  for (Slot& slot : slots_)
    if (slot.reduction == nullptr) reserve_memory(slot);
}

void MpiReductions::reserve_memory(Slot& slot) {
  slot.staging.reserve(slot_bytes_);
  slot.sums.reserve(sum_bytes_);
  slot.parts.reserve(part_count_);
}

std::int64_t MpiReductions::staging_bytes() const {
  std::int64_t bytes = 0;
  for (const Slot& slot : slots_)
    bytes += slot.staging.capacity() + slot.sums.capacity();
  return bytes;
}

MpiReductions::Slot* MpiReductions::find(const MpiReduction& reduction,
                                         std::int64_t piece) {
  Slot* first = nullptr;
  for (Slot& slot : slots_) {
    if (slot.reduction != &reduction || slot.piece < piece) continue;
    if (first == nullptr || slot.piece < first->piece) first = &slot;
  }
  return first;
}

void MpiReductions::advance() {
  if (!in_call_) post_all();
}

void MpiReductions::post_all() {
  for (Slot& slot : slots_) {
    // Nobody will ask for what has no elements here.
    if (slot.reduction != nullptr && slot.contributions.range.empty() &&
        slot.messages.test(Until::ended)) {
      vacate(slot);
    }
  }
  for (MpiReduction* reduction : started_) {
    if (!reduction->has_buckets_) return;
    while (reduction->posted_ < reduction->pieces_.count) {
      Slot* slot = nullptr;
      for (Slot& candidate : slots_) {
        if (candidate.reduction == nullptr) slot = &candidate;
      }
      if (slot == nullptr) return;
      post(*slot, *reduction);
    }
  }
}

void MpiReductions::post(Slot& slot, MpiReduction& reduction) {
  slot.reduction = &reduction;
  slot.piece = reduction.posted_++;
  link_.run(reduction.activity_.subject, [&] {
    slot.messages.begin(reduction.activity_);
    receive_parts(slot, reduction);
    send_parts(slot, reduction);
  });
}

void MpiReductions::receive_parts(Slot& slot, const MpiReduction& reduction) {
  const ReduceArguments& arguments = reduction.arguments_;
  const BlockRoutes& routes = *reduction.routes_;
  const Range own = arguments.shards.range(link_.rank());
  const Range range = reduction.pieces_.of(slot.piece, own.size());
  slot.contributions = {{}, arguments.dtype, range};
  if (range.empty()) return;

  slot.parts.resize(routes.parts.size());
  const std::int64_t first =
      (own.begin + range.begin) * size_of(arguments.dtype);
  std::size_t here = 0;
  for (std::size_t i = 0; i < routes.parts.size(); ++i) {
    const RankBlock& block = routes.parts[i];
    slot.parts[i] = {nullptr, block.first_rank, block.rank_count};
    if (block.peer == RankBlock::here)
      slot.parts[i].data = reduction.buckets_[here++] + first;
  }
  std::byte* next = slot.staging.reserve(slot_bytes_);
  for (const std::size_t i : routes.incoming) {
    const RankBlock& block = routes.parts[i];
    const std::int64_t bytes = bytes_of(block, arguments.dtype, range.size());
    slot.messages.receive(next, bytes, block.peer);
    slot.parts[i].data = next;
    next += part_stride(bytes);
  }
  slot.contributions.parts = slot.parts;
}

void MpiReductions::send_parts(Slot& slot, const MpiReduction& reduction) {
  const ReduceArguments& arguments = reduction.arguments_;
  std::byte* next = slot.sums.reserve(sum_bytes_);
  for (const RankBlock& block : reduction.routes_->outgoing) {
    const Range shard = arguments.shards.range(block.peer);
    const Range range = reduction.pieces_.of(slot.piece, shard.size());
    if (range.empty()) continue;
    const std::int64_t bytes = bytes_of(block, arguments.dtype, range.size());
    const Range in_bucket{shard.begin + range.begin, shard.begin + range.end};
    if (block.rank_count == 1) {
      slot.messages.send(static_cast<const std::byte*>(arguments.bucket) +
                             in_bucket.begin * size_of(arguments.dtype),
                         bytes, block.peer);
    } else {
      add_up(reduction, block, in_bucket, next);
      slot.messages.send(next, bytes, block.peer);
      next += part_stride(bytes);
    }
    link_.count_sent(reduction.activity_.subject, bytes);
  }
}

void MpiReductions::add_up(const MpiReduction& reduction,
                           const RankBlock& block, Range in_bucket,
                           std::byte* out) {
  const ReduceArguments& arguments = reduction.arguments_;
  const std::size_t first = reduction.routes_->place(block.first_rank);
  addends_.clear();
  for (int i = 0; i < block.rank_count; ++i) {
    addends_.push_back(
        {reduction.buckets_[first + static_cast<std::size_t>(i)] +
             in_bucket.begin * size_of(arguments.dtype),
         block.first_rank + i, 1});
  }
  arguments.sum(addends_, arguments.dtype, in_bucket.size(), out);
}

void MpiReductions::vacate(Slot& slot) {
  ++slot.reduction->finished_;
  slot.reduction = nullptr;
  reserve_memory(slot);
}

void MpiReductions::require_first(const MpiReduction& reduction) const {
  const MpiReduction& first = *started_.front();
  if (&first == &reduction) return;
  refuse_out_of_order(reduction.activity_.subject, first.activity_.subject);
}

}  // namespace kzero::detail
