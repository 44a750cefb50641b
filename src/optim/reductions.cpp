// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/reductions.hpp"

#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "kernels/kernels.hpp"
#include "optim/hooked_reduction.hpp"
#include "optim/seconds.hpp"
#include "optim/tile_table.hpp"

namespace kzero::detail {

Reductions::Reductions(std::shared_ptr<Communicator> communicator,
                       const Plan& plan, std::span<const BucketWork> buckets,
                       OrderedSum sum, const ReductionHook& hook,
                       std::shared_ptr<Trace> trace)
    : communicator_(std::move(communicator)),
      plan_(&plan),
      buckets_(buckets),
      sum_(sum),
      hook_(hook ? &hook : nullptr),
      trace_(std::move(trace)),
      tickets_(static_cast<std::size_t>(plan.trained_buckets())) {}

ReductionTicket Reductions::start_one(std::int64_t bucket) {
  const BucketWork& work = buckets_[static_cast<std::size_t>(bucket)];
  const ReduceArguments arguments{work.gradients,
                                  work.gradient_dtype,
                                  plan_->shards(bucket),
                                  plan_->bucket_bytes(),
                                  tile_elements,
                                  sum_,
                                  bucket};
  if (hook_ == nullptr) return communicator_->start_reduce(arguments);
  return start_hooked(*hook_, *communicator_, *plan_, work.gradients,
                      arguments);
}

void Reductions::start(std::int64_t count) {
  for (; started_ < count; ++started_) {
    if (trace_) trace_->record(TraceKind::reduce_begin, started_);
    tickets_[static_cast<std::size_t>(started_)] = start_one(started_);
  }
}

namespace {

/// Whether the parts follow one another and are all ranks.
bool are_all_ranks(std::span<const Contribution> parts, int ranks) {
  std::int64_t next = 0;
  for (const Contribution& part : parts) {
    if (part.data == nullptr || part.first_rank != next || part.rank_count < 1)
      return false;
    next += part.rank_count;
  }
  return next == ranks;
}

}  // namespace

// What a hook has put in the place of the communicator's own may do anything.
void Reductions::require_piece(const Contributions& piece) const {
  const std::int64_t size = plan_->shards(ended_).size(communicator_->rank());
  const bool fits =
      piece.range.begin == given_ && piece.range.end > given_ &&
      piece.range.end <= size &&
      (piece.range.end == size || piece.range.end % tile_elements == 0) &&
      piece.dtype >= DType::float16 && piece.dtype <= DType::float64 &&
      are_all_ranks(piece.parts, communicator_->size());
  if (fits) return;
  throw CommunicationError(concat(
      "reduction hook, bucket ", ended_, ": it gave elements [",
      piece.range.begin, ", ", piece.range.end, ") of this rank's shard in ",
      piece.parts.size(), " parts of type ", static_cast<int>(piece.dtype),
      " (expected the parts of all ranks in order, a piece from ", given_,
      " on that ends at a multiple of ", tile_elements, " or at ", size,
      "): give the shard in ascending pieces"));
}

Arrival Reductions::next() {
  const std::int64_t bucket = ended_;
  ReductionTicket& first = tickets_[static_cast<std::size_t>(ended_)];
  const Contributions* const piece =
      hook_ == nullptr ? first->next()
                       : call_hooked(bucket, [&] { return first->next(); });
  if (piece != nullptr) {
    if (hook_ != nullptr) require_piece(*piece);
    given_ = piece->range.end;
    return {bucket, piece};
  }
  const std::int64_t size = plan_->shards(ended_).size(communicator_->rank());
  if (hook_ != nullptr && given_ != size)
    throw CommunicationError(concat("reduction hook, bucket ", ended_,
                                    ": it ended after ", given_,
                                    " elements of this rank's shard (expected ",
                                    size, "): give all of them"));
  if (trace_) trace_->record(TraceKind::reduce_end, ended_);
  ++ended_;
  given_ = 0;
  return {bucket, nullptr};
}

bool Reductions::test() {
  const ReductionTicket& first = tickets_[static_cast<std::size_t>(ended_)];
  if (hook_ == nullptr) return first->test();
  return call_hooked(ended_, [&] { return first->test(); });
}

Arrival Reductions::poll() {
  if (!under_way() || !test()) return {};
  return next();
}

Arrival Reductions::wait() {
  const AddSeconds timer(waited_);
  return next();
}

void Reductions::settle() {
  for (; settled_ < ended_; ++settled_) {
    ReductionTicket& ticket = tickets_[static_cast<std::size_t>(settled_)];
    if (hook_ == nullptr)
      ticket->wait();
    else
      call_hooked(settled_, [&] { ticket->wait(); });
    ticket.reset();
  }
}

void Reductions::clear() {
  settle();
  settled_ = 0;
  started_ = 0;
  ended_ = 0;
  given_ = 0;
}

double Reductions::take_waited() { return std::exchange(waited_, 0.0); }

}  // namespace kzero::detail
