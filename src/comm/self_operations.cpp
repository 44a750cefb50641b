// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/self_operations.hpp"

#include <kzero/error.hpp>
#include <utility>

#include "comm/argument_checks.hpp"

namespace kzero::detail {

void SelfReduction::start(const ReduceArguments& arguments,
                          std::shared_ptr<void> owner) {
  subject_ = subject_of(arguments);
  part_ = {arguments.bucket, 0, 1};
  contributions_ = {{&part_, 1}, arguments.dtype, arguments.shards.range(0)};
  given_ = contributions_.range.empty();
  ended_ = false;
  waited_ = false;
  state_.started.push_back(this);
  owner_ = std::move(owner);
}

const Contributions* SelfReduction::next() {
  state_.health->require(subject_);
  if (ended_) return nullptr;
  const SelfReduction& first = *state_.started.front();
  if (&first != this) refuse_out_of_order(subject_, first.subject_);
  if (!std::exchange(given_, true)) return &contributions_;
  state_.started.erase(state_.started.begin());
  ended_ = true;
  return nullptr;
}

bool SelfReduction::test() {
  state_.health->require(subject_);
  return ended_ || state_.started.front() == this;
}

void SelfReduction::wait() {
  state_.health->require(subject_);
  if (!ended_) refuse_before_the_end(subject_);
  waited_ = true;
}

void SelfReduction::release() noexcept {
  if (!waited_) state_.health->break_off(subject_, dropped);
  // Last, because this reduction may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

void SelfAllGather::start(const GatherArguments& arguments,
                          std::shared_ptr<void> owner) {
  subject_ = subject_of(arguments);
  ended_ = false;
  owner_ = std::move(owner);
}

bool SelfAllGather::test() {
  wait();
  return true;
}

void SelfAllGather::wait() {
  state_.health->require(subject_);
  ended_ = true;
}

void SelfAllGather::release() noexcept {
  if (!ended_) state_.health->break_off(subject_, dropped);
  // Last, because this operation may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

}  // namespace kzero::detail
