// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/gathers.hpp"

#include <algorithm>
#include <utility>

#include "layout/exchange_pieces.hpp"
#include "optim/seconds.hpp"

namespace kzero::detail {
namespace {

int chunk_of(const Plan& plan, std::int64_t bucket) {
  return plan.buffer_of(bucket).chunk;
}

}  // namespace

Gathers::Gathers(std::shared_ptr<Communicator> communicator, const Plan& plan,
                 const ParameterSet& parameters,
                 std::span<const BucketWork> buckets, const Storage& storage,
                 GatherOrder order, std::int64_t window,
                 std::shared_ptr<Trace> trace)
    : communicator_(std::move(communicator)),
      plan_(plan),
      parameters_(parameters),
      buckets_(buckets),
      window_(window),
      trace_(std::move(trace)) {
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) order_.push_back(b);
  if (order == GatherOrder::forward) {
    // Within a chunk the reverse of the layout's.
    std::reverse(order_.begin(), order_.end());
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::int64_t a, std::int64_t b) {
                       return chunk_of(plan, a) < chunk_of(plan, b);
                     });
  }
  position_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::int64_t bucket = order_[i];
    position_[static_cast<std::size_t>(bucket)] = static_cast<std::int64_t>(i);
    // Of nothing but empty parameters there are no pieces.
    const std::int64_t pieces =
        is_external(bucket) ? gather_pieces(plan, bucket).count : 1;
    for (std::int64_t piece = 0; piece < pieces; ++piece)
      transfers_.push_back({bucket, piece, piece == 0, piece == pieces - 1});
    end_.push_back(std::ssize(transfers_));
  }
  tickets_.resize(transfers_.size());
  started_ = ended_ = released_ = std::ssize(transfers_);
  if (storage.gather_piece(0) == nullptr) return;
  window_ = std::min<std::int64_t>(window_, 2);
  for (int i = 0; i < 2; ++i)
    staged_.emplace_back(storage.gather_piece(i), communicator_->size());
}

bool Gathers::is_external(std::int64_t bucket) const {
  return plan_.buffer_of(bucket).external;
}

void Gathers::begin(Ahead ahead) {
  started_ = ended_ = released_ = 0;
  open_ = ahead == Ahead::all   ? std::ssize(order_)
          : ahead == Ahead::one ? std::min<std::int64_t>(1, std::ssize(order_))
                                : 0;
  updating_ = ahead == Ahead::updated && !transfers_.empty();
  under_way_.store(!transfers_.empty(), std::memory_order_release);
}

void Gathers::update_ended(std::int64_t buckets) {
  open_ = buckets;
  if (open_ == std::ssize(order_)) updating_ = false;
}

void Gathers::open_all() {
  if (!updating_) open_ = std::ssize(order_);
}

void Gathers::run_to_end() {
  open_ = std::ssize(order_);
  if (staged_.empty()) window_ = std::ssize(transfers_);
}

void Gathers::drop() noexcept {
  for (Ticket& each : tickets_) each.reset();
  started_ = ended_ = released_ = std::ssize(transfers_);
  updating_ = false;
  under_way_.store(false, std::memory_order_release);
}

void Gathers::leave() {
  left_ = true;
  run_to_end();
  for (std::int64_t t = ended_; t < started_; ++t) ticket(t)->leave();
  if (staged_.empty()) return;
  // Room for every piece that has still to start.
  for (std::int64_t t = 0; t < std::ssize(transfers_); ++t) {
    const std::int64_t bucket = transfers_[static_cast<std::size_t>(t)].bucket;
    std::byte* memory = nullptr;
    if (t >= started_ && is_external(bucket)) {
      rooms_.push_back(communicator_->allocate(
          communicator_->size() * gather_pieces(plan_, bucket).length *
          size_of(plan_.buffer_of(bucket).dtype)));
      memory = static_cast<std::byte*>(rooms_.back().get());
    }
    staged_apart_.emplace_back(memory, communicator_->size());
  }
  first_apart_ = started_;
  window_ = std::ssize(transfers_);
}

// Tickets of transfers that have ended are kept as long as the window has room:
// so the communicator has the most there can be at a time from the first step
// on, whenever each of them ends.
void Gathers::release_until(std::int64_t transfer) {
  while (released_ < std::min(transfer, ended_)) ticket(released_++).reset();
}

bool Gathers::start(const Hands& hands) {
  if (started_ >= transfers_of(open_)) return false;
  release_until(started_ - window_ + 1);
  if (started_ - released_ >= window_) return false;
  const Transfer& transfer = transfers_[static_cast<std::size_t>(started_)];
  const std::int64_t bucket = transfer.bucket;
  const BucketWork& work = buckets_[static_cast<std::size_t>(bucket)];
  if (trace_ && transfer.is_first)
    trace_->record(TraceKind::gather_begin, bucket);
  ticket(started_) =
      is_external(bucket)
          ? staged(started_).start(*communicator_, external(bucket), work,
                                   gather_pieces(plan_, bucket), transfer.piece,
                                   hands)
          : communicator_->start_all_gather(
                {work.parameters, work.dtype, plan_.shards(bucket), bucket});
  if (left_) ticket(started_)->leave();
  ++started_;
  return true;
}

void Gathers::end_first(const Hands& hands) {
  const Transfer& transfer = transfers_[static_cast<std::size_t>(ended_)];
  if (is_external(transfer.bucket) && !left_)
    staged(ended_).finish(external(transfer.bucket), hands);
  if (trace_ && transfer.is_last)
    trace_->record(TraceKind::gather_end, transfer.bucket);
  ++ended_;
  if (ended_ < std::ssize(transfers_)) return;
  release_until(ended_);
  under_way_.store(false, std::memory_order_release);
}

bool Gathers::advance(const Hands& hands) {
  bool moved = false;
  while (ended_ < started_ && ticket(ended_)->test()) {
    end_first(hands);
    moved = true;
  }
  while (start(hands)) moved = true;
  return moved;
}

void Gathers::wait_until(std::int64_t position, const Hands& hands) {
  open_ = std::max(open_, std::min(position + 1, std::ssize(order_)));
  const std::int64_t end = transfers_of(position);
  while (ended_ < end) {
    while (start(hands)) {
    }
    {
      const AddSeconds timer(waited_);
      ticket(ended_)->wait();
    }
    end_first(hands);
  }
  while (start(hands)) {
  }
}

void Gathers::wait_for_bucket(std::int64_t bucket, const Hands& hands) {
  const std::int64_t position = position_[static_cast<std::size_t>(bucket)] + 1;
  if (trace_) trace_->record(TraceKind::read_begin, bucket);
  wait_until(position, hands);
  if (trace_) trace_->record(TraceKind::read_end, bucket);
}

void Gathers::wait_for_chunk(int chunk, const Hands& hands) {
  std::int64_t position = 0;
  for (std::int64_t i = 0; i < std::ssize(order_); ++i)
    if (chunk_of(plan_, order_[static_cast<std::size_t>(i)]) <= chunk)
      position = i + 1;
  wait_until(position, hands);
}

void Gathers::wait_for_all(const Hands& hands) {
  wait_until(std::ssize(order_), hands);
}

double Gathers::take_waited() { return std::exchange(waited_, 0.0); }

}  // namespace kzero::detail
