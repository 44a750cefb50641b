// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Waits for the gathers that a step has left under way. Those that are begun
// before step() (Schedule::interleaved) are its own business: all of before
// have ended then, and a rank that waited for them would wait for the others'
// step().
#include <kzero/error.hpp>
#include <set>

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

void OptimizerCore::require_mpi(const char* what) const {
  if (ended_)
    throw CommunicationError(
        concat(what, " after MPI_Finalize: let that be the last call"));
}

void OptimizerCore::wait_for_parameter(ParameterId id) {
  const std::int64_t bucket = plan.placement(id).bucket;
  if (gathers_->under_way() && bucket < trained_buckets()) {
    const AddSeconds timer(seconds(Phase::read));
    const auto turn = progress_.take();
    if (!gathers_begun_) gathers_->wait_for_bucket(bucket, Hands(space));
  }
  advance_here();
}

void OptimizerCore::wait_for_all_parameters() {
  if (!gathers_->under_way()) return;
  const AddSeconds timer(seconds(Phase::read));
  const auto turn = progress_.take();
  if (!gathers_begun_) gathers_->wait_for_all(Hands(space));
}

bool OptimizerCore::end_transfers() noexcept {
  ended_ = true;
  progress_.stop();
  reductions_ = Reductions();
  rules_agreement_ = RulesAgreement();
  if (!failure_.empty() || progress_.failed()) return false;
  // Of a step that will not end here, so that it ends nowhere.
  if (gathers_begun_) gathers_->drop();
  gathers_->run_to_end();
  return gathers_->under_way();
}

bool OptimizerCore::leave_gathers() noexcept {
  if (!end_transfers()) return false;
  try {
    gathers_->leave();
  } catch (...) {
    // Without memory for it they go on a few at a time.
  }
  return true;
}

bool OptimizerCore::advance_left_gathers() {
  gathers_->advance(Hands());
  return gathers_->under_way();
}

void OptimizerCore::finish_gather(int chunk) {
  std::set<int> known;
  for (const Buffer& each : plan.buffers()) known.insert(each.chunk);
  if (!known.contains(chunk)) {
    std::string chunks;
    for (const int each : known)
      chunks += concat(chunks.empty() ? "" : ", ", each);
    throw InvalidArgument(
        concat("finish_gather: no parameter is in chunk ", chunk,
               " (expected one of ", chunks.empty() ? "none" : chunks,
               "): give ParameterOptions::chunk of a parameter"));
  }
  if (!gathers_->under_way()) return;
  const AddSeconds timer(seconds(Phase::read));
  const auto turn = progress_.take();
  if (!gathers_begun_) gathers_->wait_for_chunk(chunk, Hands(space));
}

}  // namespace kzero::detail
