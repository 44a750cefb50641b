// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/simulated_traffic.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/message.hpp"

namespace kzero::detail {

SimulatedTraffic::SimulatedTraffic(std::shared_ptr<Communicator> inner,
                                   std::shared_ptr<SimulatedWire> wire)
    : inner_(std::move(inner)), wire_(std::move(wire)) {}

void SimulatedTraffic::remove(SimulatedTransfer& transfer) noexcept {
  std::erase(under_way_, &transfer);
}

void SimulatedTraffic::advance() {
  // A rank posts in this order, so that one which is not complete holds up
  // those behind it.
  bool complete = true;
  for (SimulatedTransfer* transfer : under_way_) {
    if (!transfer->has_start_ && complete) {
      complete = transfer->exchange_->test();
      if (complete) give_start(*transfer);
    }
    transfer->poll();
  }
}

bool SimulatedTraffic::look_for_start(const SimulatedTransfer& transfer) {
  constexpr int most_polls = 8;
  advance();
  for (int poll = 1; poll < most_polls && !transfer.has_start_; ++poll) {
    advance();
  }
  return transfer.has_start_;
}

void SimulatedTraffic::wait_for_start(SimulatedTransfer& transfer) {
  for (SimulatedTransfer* earlier : under_way_) {
    if (transfer.has_start_) return;
    if (earlier->has_start_) continue;
    try {
      earlier->exchange_->wait();
    } catch (const CommunicationError& error) {
      throw CommunicationError(
          concat(name_of(earlier->subject_),
                 ", when each rank posted it: ", error.what()));
    }
    give_start(*earlier);
  }
}

void SimulatedTraffic::give_start(SimulatedTransfer& transfer) {
  const std::int64_t* stamps = transfer.stamps();
  const std::chrono::nanoseconds posted(
      *std::max_element(stamps, stamps + inner_->size()));
  transfer.begin_ = wire_->take(
      std::max(SteadyClock::time_point(posted), last_end_), transfer.length_);
  last_end_ = transfer.begin_ + transfer.length_;
  transfer.has_start_ = true;
  transfer.exchange_.reset();
}

void SimulatedTraffic::sleep_until(SteadyClock::time_point end) {
  constexpr std::chrono::microseconds between_polls(200);
  advance();
  for (auto now = SteadyClock::now(); now < end; now = SteadyClock::now()) {
    std::this_thread::sleep_until(std::min(end, now + between_polls));
    advance();
  }
}

void SimulatedTraffic::take_time(std::int64_t bytes) {
  advance();
  const SteadyClock::duration length = wire_->length_of(bytes);
  sleep_until(wire_->take(SteadyClock::now(), length) + length);
}

}  // namespace kzero::detail
