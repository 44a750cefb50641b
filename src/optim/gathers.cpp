// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/gathers.hpp"

#include <algorithm>
#include <utility>

#include "optim/seconds.hpp"

namespace kzero::detail {
namespace {

int chunk_of(const Plan& plan, std::int64_t bucket) {
  const Bucket& of = plan.buckets()[static_cast<std::size_t>(bucket)];
  return plan.buffers()[static_cast<std::size_t>(of.buffer)].chunk;
}

}  // namespace

Gathers::Gathers(std::shared_ptr<Communicator> communicator, const Plan& plan,
                 std::span<const BucketWork> buckets, std::int64_t window,
                 std::shared_ptr<Trace> trace)
    : communicator_(std::move(communicator)),
      plan_(plan),
      buckets_(buckets),
      window_(window),
      trace_(std::move(trace)) {
  // The forward order is the reverse of the layout's.
  for (std::int64_t b = plan.trained_buckets() - 1; b >= 0; --b)
    order_.push_back(b);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::int64_t a, std::int64_t b) {
                     return chunk_of(plan, a) < chunk_of(plan, b);
                   });
  position_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i)
    position_[static_cast<std::size_t>(order_[i])] =
        static_cast<std::int64_t>(i);
  started_ = ended_ = std::ssize(order_);
}

void Gathers::begin(Ahead ahead) {
  started_ = ended_ = 0;
  open_ = ahead == Ahead::all ? std::ssize(order_)
                              : std::min<std::int64_t>(1, std::ssize(order_));
  under_way_.store(!order_.empty(), std::memory_order_release);
}

bool Gathers::start(const Hands&) {
  if (started_ >= open_ || started_ - ended_ >= window_) return false;
  const std::int64_t bucket = order_[static_cast<std::size_t>(started_)];
  const BucketWork& of = buckets_[static_cast<std::size_t>(bucket)];
  if (trace_) trace_->record(TraceKind::gather_begin, bucket);
  ticket(started_) = communicator_->start_all_gather(
      {of.parameters, of.dtype, plan_.shards(bucket), bucket});
  ++started_;
  return true;
}

void Gathers::end_first(const Hands&) {
  ticket(ended_).reset();
  if (trace_)
    trace_->record(TraceKind::gather_end,
                   order_[static_cast<std::size_t>(ended_)]);
  ++ended_;
  if (ended_ == std::ssize(order_))
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
  while (ended_ < position) {
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
  if (ended_ >= position && open_ > position) return;  // often
  if (trace_) trace_->record(TraceKind::read_begin, bucket);
  wait_until(position, hands);
  if (trace_) trace_->record(TraceKind::read_end, bucket);
}

void Gathers::wait_for_chunk(int chunk, const Hands& hands) {
  const auto end = std::partition_point(
      order_.begin(), order_.end(),
      [&](std::int64_t bucket) { return chunk_of(plan_, bucket) <= chunk; });
  wait_until(end - order_.begin(), hands);
}

void Gathers::wait_for_all(const Hands& hands) {
  wait_until(std::ssize(order_), hands);
}

double Gathers::take_waited() { return std::exchange(waited_, 0.0); }

}  // namespace kzero::detail
