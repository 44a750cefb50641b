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
                                     std::shared_ptr<void> owner) {
  const Activity activity =
      link_.begin(Collective::reduce, subject_of(arguments), arguments.index);
  MpiReduction& reduction = take_free(pool_, *this);
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
  advance();
  reduction.owner_ = std::move(owner);
  return ReductionTicket(&reduction);
}

// Both slots get room for the largest piece that there was, when they are free:
// which of them takes it is a matter of time.
void MpiReductions::reserve_slots(const MpiReduction& reduction) {
  const ReduceArguments& arguments = reduction.arguments_;
  // No piece is larger than the first one.
  const Range first =
      reduction.pieces_.of(0, arguments.shards.size(link_.rank()));
  slot_bytes_ = std::max(
      slot_bytes_, (link_.size() - 1) *
                       part_stride(first.size() * size_of(arguments.dtype)));
  for (Slot& slot : slots_)
    if (slot.reduction == nullptr) slot.staging.reserve(slot_bytes_);
}

std::int64_t MpiReductions::staging_bytes() const {
  std::int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.staging.capacity();
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
  for (Slot& slot : slots_) {
    // Nobody will ask for what has no elements here.
    if (slot.reduction != nullptr && slot.contributions.range.empty() &&
        slot.messages.test(Until::ended)) {
      vacate(slot);
    }
  }
  for (MpiReduction* reduction : started_) {
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
  const std::int64_t element = size_of(arguments.dtype);
  const int size = link_.size();
  const Range own = arguments.shards.range(link_.rank());
  const Range range = reduction.pieces_.of(slot.piece, own.size());
  slot.contributions = {{}, arguments.dtype, range};
  if (range.empty()) return;

  const std::int64_t bytes = range.size() * element;
  const std::int64_t stride = part_stride(bytes);
  std::byte* staging = slot.staging.reserve(slot_bytes_);
  slot.parts.resize(static_cast<std::size_t>(size));
  const auto part = [&](int rank) -> Contribution& {
    return slot.parts[static_cast<std::size_t>(rank)];
  };
  part(link_.rank()) = {static_cast<const std::byte*>(arguments.bucket) +
                            (own.begin + range.begin) * element,
                        link_.rank(), 1};
  // Round the ring, so that not all ranks start with the same peer.
  for (int distance = 1; distance < size; ++distance) {
    const int peer = link_.neighbour(-distance);
    slot.messages.receive(staging, bytes, peer);
    part(peer) = {staging, peer, 1};
    staging += stride;
  }
  slot.contributions.parts = slot.parts;
}

void MpiReductions::send_parts(Slot& slot, const MpiReduction& reduction) {
  const ReduceArguments& arguments = reduction.arguments_;
  const std::int64_t element = size_of(arguments.dtype);
  for (int distance = 1; distance < link_.size(); ++distance) {
    const int peer = link_.neighbour(distance);
    const Range shard = arguments.shards.range(peer);
    const Range range = reduction.pieces_.of(slot.piece, shard.size());
    if (range.empty()) continue;
    slot.messages.send(static_cast<const std::byte*>(arguments.bucket) +
                           (shard.begin + range.begin) * element,
                       range.size() * element, peer);
    link_.count_sent(reduction.activity_.subject, range.size() * element);
  }
}

void MpiReductions::vacate(Slot& slot) {
  ++slot.reduction->finished_;
  slot.reduction = nullptr;
  slot.staging.reserve(slot_bytes_);
}

void MpiReductions::require_first(const MpiReduction& reduction) const {
  const MpiReduction& first = *started_.front();
  if (&first == &reduction) return;
  refuse_out_of_order(reduction.activity_.subject, first.activity_.subject);
}

}  // namespace kzero::detail
