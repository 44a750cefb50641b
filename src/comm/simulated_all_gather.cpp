// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/simulated_all_gather.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/argument_checks.hpp"

namespace kzero::detail {

namespace {

/// A bucket of bytes around this rank's shard.
struct Parts {
  Parts(const GatherArguments& arguments, int rank) {
    const std::int64_t element = size_of(arguments.dtype);
    const Range shard = arguments.shards.range(rank);
    own = {shard.begin * element, shard.end * element};
    total = arguments.shards.total() * element;
  }

  Range own;
  std::int64_t total = 0;
};

/// The larger of what a rank sends and what it receives.
std::int64_t bytes_on_the_wire(const Parts& parts, int ranks) {
  return std::max((ranks - 1) * parts.own.size(),
                  parts.total - parts.own.size());
}

constexpr int poison = 0xff;

}  // namespace

SimulatedAllGather::SimulatedAllGather(SimulatedTraffic& traffic)
    : SimulatedTransfer(traffic), shadow_(traffic.health()) {}

void SimulatedAllGather::start(const GatherArguments& arguments,
                               std::shared_ptr<void> owner) {
  Communicator& inner = traffic_.inner();
  const Parts parts(arguments, inner.rank());
  auto* bucket = static_cast<std::byte*>(arguments.bucket);
  const std::byte* own = bucket + parts.own.begin;
  std::byte* shadow = shadow_.reserve(parts.total);
  copy_bytes(shadow + parts.own.begin, own, parts.own.size());

  GatherArguments in_shadow = arguments;
  in_shadow.bucket = shadow;
  Ticket posted = inner.start_all_gather(in_shadow);
  post(subject_of(arguments), bytes_on_the_wire(parts, inner.size()));
  arguments_ = arguments;
  inner_ = std::move(posted);
  has_come_ = false;
  ended_ = false;
  owner_ = std::move(owner);

  source_.begin({own, static_cast<std::size_t>(parts.own.size())});
  const auto spoil = [&](Range range) {
    if (range.empty()) return;
    std::memset(bucket + range.begin, poison,
                static_cast<std::size_t>(range.size()));
  };
  spoil({0, parts.own.begin});
  spoil({parts.own.end, parts.total});
}

void SimulatedAllGather::poll() {
  if (!has_come_) has_come_ = inner_->test();
}

SteadyClock::time_point SimulatedAllGather::end() const {
  const Communicator& inner = traffic_.inner();
  return arrival_of(
      bytes_on_the_wire(Parts(arguments_, inner.rank()), inner.size()));
}

bool SimulatedAllGather::test() {
  return traffic_.run(subject_, [&] {
    if (ended_) return true;
    if (!traffic_.look_for_start(*this)) return false;
    if (SteadyClock::now() < end()) return false;
    const auto has_come = [&] {
      poll();
      return has_come_;
    };
    if (!insist(has_come)) return false;
    finish();
    return true;
  });
}

void SimulatedAllGather::wait() {
  traffic_.run(subject_, [&] {
    if (ended_) return;
    // The wrapped one knows best who is missing.
    inner_->wait();
    has_come_ = true;
    traffic_.wait_for_start(*this);
    traffic_.sleep_until(end());
    finish();
  });
}

void SimulatedAllGather::finish() {
  const int rank = traffic_.inner().rank();
  const Parts parts(arguments_, rank);
  auto* bucket = static_cast<std::byte*>(arguments_.bucket);
  const std::byte* shadow = shadow_.reserve(parts.total);
  copy_bytes(bucket, shadow, parts.own.begin);
  copy_bytes(bucket + parts.own.end, shadow + parts.own.end,
             parts.total - parts.own.end);
  ended_ = true;
  retire();
  source_.end(subject_, rank);
}

void SimulatedAllGather::release() noexcept {
  if (!ended_) traffic_.health()->break_off(subject_, dropped);
  inner_.reset();
  retire();
  // Last, because this operation may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

std::int64_t SimulatedAllGather::staging_bytes() const {
  return SimulatedTransfer::staging_bytes() + shadow_.capacity();
}

}  // namespace kzero::detail
