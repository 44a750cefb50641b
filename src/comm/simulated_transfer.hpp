// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What reductions and gathers on a simulated link have in common: a start that
// depends on all ranks, and a length.
#pragma once

#include <chrono>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <thread>

#include "comm/aligned_memory.hpp"
#include "comm/simulated_wire.hpp"

namespace kzero::detail {

class SimulatedTraffic;

class SimulatedTransfer {
 public:
  explicit SimulatedTransfer(SimulatedTraffic& traffic);
  SimulatedTransfer(const SimulatedTransfer&) = delete;
  SimulatedTransfer& operator=(const SimulatedTransfer&) = delete;

  /// Moves the data, without a wait.
  virtual void poll() = 0;

  /// Bytes that it holds.
  virtual std::int64_t staging_bytes() const { return stamps_.capacity(); }

 protected:
  ~SimulatedTransfer() = default;

  /// Tells all ranks that this one has posted it. Collective.
  void post(const Subject& subject, std::int64_t bytes);

  /// When so many of its bytes have passed, once it has a start.
  SteadyClock::time_point arrival_of(std::int64_t bytes) const;

  /// Repeats a poll until it gives true. Past the deadline all ranks have
  /// posted, and the data comes as soon as each of them calls something; how
  /// long this rank waits for that is bounded for the whole transfer.
  template <class Poll>
  bool insist(Poll poll) {
    const auto begin = SteadyClock::now();
    auto now = begin;
    bool done = poll();
    while (!done && now - begin < patience_) {
      std::this_thread::yield();
      done = poll();
      now = SteadyClock::now();
    }
    patience_ -= now - begin;
    return done;
  }

  /// The data has come, or never will.
  void retire() noexcept;

  SimulatedTraffic& traffic_;
  Subject subject_;

 private:
  friend class SimulatedTraffic;

  /// When each rank posted it.
  std::int64_t* stamps();

  WorkSpace stamps_;
  Ticket exchange_;  // of the stamps
  SteadyClock::duration length_{0};
  SteadyClock::duration patience_{0};
  SteadyClock::time_point begin_;
  bool has_start_ = false;
};

}  // namespace kzero::detail
