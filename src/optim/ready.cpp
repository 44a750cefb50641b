// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Before a step: which gradients are complete, and what goes out meanwhile.
#include <kzero/error.hpp>

#include "optim/optimizer_core.hpp"
#include "optim/seconds.hpp"
#include "storage/external_bucket.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {

void OptimizerCore::mark_ready(ParameterId id, const ExecutionSpace& on) {
  require_mpi("mark_ready");
  marks_.mark(id);
  averaged_is_valid_ = false;
  fetch_gradient(parameters[id].storage, on);
  fence(on, "kzero::ready");
  const AddSeconds timer(seconds(Phase::ready));
  if (options.trace) options.trace->record(TraceKind::ready, id.index);
  if (overlaps_backward()) {
    disagreed_ = false;  // its hyperparameters may go out now
    if (interleaved() && !prepared_) {
      classes.prepare(rules);
      prepared_ = true;
    }
    readiness_.mark(plan.placement(id).bucket);
    released_.store(readiness_.leading(), std::memory_order_release);
    progress_.wake();
  }
  advance_here();
}

void OptimizerCore::zero_gradients(const ExecutionSpace& on) {
  // After a disagreement the caller may begin the step anew.
  if (disagreed_) {
    const auto turn = progress_.take();
    forget_step();
  } else {
    require_unmarked("zero_gradients");
  }
  averaged_is_valid_ = false;
  storage->zero_gradients(on);
  advance_here();
}

void OptimizerCore::forget_reductions() {
  // What goes out early in another try is not kept, whatever was found before.
  marks_.forget_kept();
  rules_agreement_.clear();
  reductions_.clear();
  released_ = 0;
  summed_tiles_ = 0;
  finished_buckets_ = 0;
  gathers_begun_ = false;
  prepared_ = false;
  shadow_ = false;
  refused_ = false;
  divided_by_ = 0;
}

void OptimizerCore::forget_step() {
  marks_.clear();
  readiness_.clear();
  forget_reductions();
  disagreed_ = false;
}

void OptimizerCore::start_reductions(std::int64_t count) {
  if (count == 0) return;
  rules_agreement_.start(rules_hash_);
  reductions_.start(count);
}

// From the caller's own memory to its bucket. For a name of several that are
// tied: the last one finds the gradient complete.
void OptimizerCore::fetch_gradient(ParameterId id, const ExecutionSpace& on) {
  const ParameterInfo& info = parameters[id];
  if (!info.external) return;
  read_array(on, info.external->gradient,
             bucket_of(id).gradients +
                 in_bucket(id).begin * size_of(info.gradient_dtype));
}

// Where nothing was marked, everything is ready now.
void OptimizerCore::fetch_unmarked() {
  if (shadow_) {
    storage->zero_gradient_buckets(space);
    return;
  }
  if (marks_.any()) {
    zero_unmarked();
    return;
  }
  for (std::int64_t i = 0; i < parameters.size(); ++i)
    if (parameters[{i}].storage.index == i && !parameters[{i}].frozen)
      fetch_gradient({i}, space);
}

// Once something was marked, what was not counts as zero: whatever its
// gradient holds.
void OptimizerCore::zero_unmarked() {
  marks_.for_each_unmarked([this](ParameterId id) {
    const BucketWork& bucket = bucket_of(id);
    const Range range = in_bucket(id);
    const std::int64_t bytes = size_of(bucket.gradient_dtype);
    zero_bytes(bucket.gradients + range.begin * bytes, range.size() * bytes,
               space);
  });
}

// Where updates are interleaved, the gathers of the step before come first.
bool OptimizerCore::can_sum_early() {
  if (!rules_agreement_.known() || !agreed()) return false;
  if (!interleaved() || gathers_begun_) return true;
  if (gathers_->under_way()) return false;
  begin_gathers();
  return true;
}

// What has come of buckets that went out before step() is added up, and updated
// where updates are interleaved. This rank has marked all their parameters:
// none of them is kept.
Advance OptimizerCore::advance(const Hands& hands) {
  start_reductions(released_.load(std::memory_order_acquire));
  bool moved = false;
  if (can_sum_early()) {
    const Arrival arrival = reductions_.poll();
    if (arrival.contributions != nullptr)
      sum(arrival, hands, interleaved());
    else if (interleaved())
      finish_buckets(hands);
    moved = arrival.bucket >= 0;
  }
  moved = gathers_->advance(hands) || moved;
  if (moved) return Advance::moved;
  return reductions_.under_way() || gathers_->under_way() ? Advance::waiting
                                                          : Advance::idle;
}

bool OptimizerCore::advance_gathers() {
  if (progress_.running() || ended_) return false;
  gathers_->open_all();
  gathers_->advance(Hands(space));
  return gathers_->under_way();
}

void OptimizerCore::advance_here() {
  if (progress_.running() || !overlaps() || ended_) return;
  while (advance(Hands(space)) == Advance::moved) {
  }
}

}  // namespace kzero::detail
