// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Waits for the gathers that a step has left under way.
#include <algorithm>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/seconds.hpp"

namespace kzero::detail {

void OptimizerCore::require_usable() const {
  if (!failure_.empty())
    throw CommunicationError(concat(
        "refused (the optimizer is unusable after an earlier error: ", failure_,
        "): make a new one from a checkpoint or end the program"));
  progress_.check();
}

void OptimizerCore::wait_for_parameter(ParameterId id) {
  const std::int64_t bucket = plan.placement(id).bucket;
  if (gathers_->under_way() && bucket < trained_buckets()) {
    const auto turn = progress_.take();
    const AddSeconds timer(seconds(Phase::read));
    gathers_->wait_for_bucket(bucket, Hands(space));
  }
  advance_here();
}

void OptimizerCore::wait_for_all_parameters() {
  if (!gathers_->under_way()) return;
  const auto turn = progress_.take();
  const AddSeconds timer(seconds(Phase::read));
  gathers_->wait_for_all(Hands(space));
}

bool OptimizerCore::leave_gathers() noexcept {
  progress_.stop();
  reductions_ = Reductions();
  if (!failure_.empty() || progress_.failed()) {
    storage->keep_buckets();
    return false;
  }
  if (!gathers_->under_way()) return false;
  gathers_->leave();
  return true;
}

bool OptimizerCore::advance_left_gathers() {
  gathers_->advance(Hands());
  return gathers_->under_way();
}

void OptimizerCore::finish_gather(int chunk) {
  const auto known = plan.buffers();
  if (std::none_of(known.begin(), known.end(),
                   [&](const Buffer& each) { return each.chunk == chunk; })) {
    std::string chunks;
    for (const Buffer& each : known)
      chunks += concat(chunks.empty() ? "" : ", ", each.chunk);
    throw InvalidArgument(
        concat("finish_gather: no parameter is in chunk ", chunk,
               " (expected one of ", chunks.empty() ? "none" : chunks,
               "): give ParameterOptions::chunk of a parameter"));
  }
  if (!gathers_->under_way()) return;
  const auto turn = progress_.take();
  const AddSeconds timer(seconds(Phase::read));
  gathers_->wait_for_chunk(chunk, Hands(space));
}

}  // namespace kzero::detail
