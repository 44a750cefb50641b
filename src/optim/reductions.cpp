// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/reductions.hpp"

#include <utility>

#include "kernels/kernels.hpp"
#include "optim/seconds.hpp"
#include "optim/tile_table.hpp"

namespace kzero::detail {

Reductions::Reductions(std::shared_ptr<Communicator> communicator,
                       const Plan& plan, std::span<const BucketWork> buckets,
                       std::shared_ptr<Trace> trace)
    : communicator_(std::move(communicator)),
      plan_(&plan),
      buckets_(buckets),
      trace_(std::move(trace)),
      tickets_(static_cast<std::size_t>(plan.trained_buckets())) {}

void Reductions::start(std::int64_t count) {
  for (; started_ < count; ++started_) {
    const auto i = static_cast<std::size_t>(started_);
    if (trace_) trace_->record(TraceKind::reduce_begin, started_);
    tickets_[i] = communicator_->start_reduce(
        {buckets_[i].gradients, buckets_[i].gradient_dtype,
         plan_->shards(started_), plan_->bucket_bytes(), tile_elements,
         ordered_sum, started_});
  }
}

void Reductions::end_first() {
  tickets_[static_cast<std::size_t>(ended_)].reset();
  if (trace_) trace_->record(TraceKind::reduce_end, ended_);
  ++ended_;
}

Arrival Reductions::poll() {
  while (ended_ < started_) {
    ReductionTicket& first = tickets_[static_cast<std::size_t>(ended_)];
    if (!first->test()) return {};
    if (const Contributions* piece = first->next()) return {ended_, piece};
    end_first();
  }
  return {};
}

Arrival Reductions::wait() {
  const AddSeconds timer(waited_);
  while (ended_ < started_) {
    ReductionTicket& first = tickets_[static_cast<std::size_t>(ended_)];
    if (const Contributions* piece = first->next()) return {ended_, piece};
    end_first();
  }
  return {};
}

void Reductions::clear() {
  started_ = 0;
  ended_ = 0;
}

double Reductions::take_waited() { return std::exchange(waited_, 0.0); }

}  // namespace kzero::detail
