// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/mpi_reduction.hpp"

#include <utility>

#include "comm/argument_checks.hpp"

namespace kzero::detail {
namespace {

/// While it lives.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

}  // namespace

void MpiReduction::set_buckets(std::span<const std::byte* const> buckets) {
  buckets_.assign(buckets.begin(), buckets.end());
  has_buckets_ = true;
  all_.advance();
}

const Contributions* MpiReduction::next() {
  all_.link_.health()->require(activity_.subject);
  if (ended_) return nullptr;
  all_.require_first(*this);
  const Raised in_call(all_.in_call_);
  all_.post_all();

  if (holds_) {
    // The caller is done with it.
    MpiReductions::Slot& slot = *all_.find(*this, given_ - 1);
    slot.messages.wait(Until::ended);
    holds_ = false;
    all_.vacate(slot);
    all_.post_all();
  }
  if (given_ < own_count_) {
    MpiReductions::Slot& slot = *all_.find(*this, given_);
    slot.messages.wait(Until::received);
    ++given_;
    holds_ = true;
    return &slot.contributions;
  }
  // Of what is left this rank has no elements: it only sends.
  while (finished_ < pieces_.count) {
    MpiReductions::Slot& slot = *all_.find(*this, own_count_);
    slot.messages.wait(Until::ended);
    all_.post_all();
  }
  all_.started_.erase(all_.started_.begin());
  ended_ = true;
  return nullptr;
}

bool MpiReduction::test() {
  all_.link_.health()->require(activity_.subject);
  if (ended_) return true;
  all_.advance();
  if (all_.started_.front() != this) return false;
  // What the caller holds stays valid, but next() will wait until it is sent.
  if (holds_ && !all_.find(*this, given_ - 1)->messages.test(Until::ended)) {
    return false;
  }
  if (given_ < own_count_) {
    return all_.find(*this, given_)->messages.test(Until::received);
  }
  return finished_ + (holds_ ? 1 : 0) == pieces_.count;
}

// Where there are no more pieces, all messages have ended.
void MpiReduction::wait() {
  all_.link_.health()->require(activity_.subject);
  if (!ended_) refuse_before_the_end(activity_.subject);
  waited_ = true;
}

void MpiReduction::release() noexcept {
  if (!waited_) all_.link_.break_off_dropped(activity_.subject);
  // Last, because this reduction may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

}  // namespace kzero::detail
