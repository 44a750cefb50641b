// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The time that transfers take on a simulated link.
#pragma once

#include <chrono>
#include <cstdint>
#include <kzero/simulated_communicator.hpp>
#include <mutex>
#include <vector>

namespace kzero::detail {

using SteadyClock = std::chrono::steady_clock;

/// The one link of a process. Several threads may use it.
class SimulatedWire {
 public:
  explicit SimulatedWire(const SimulatedLink& link);

  const SimulatedLink& link() const { return link_; }

  /// How long so many bytes take, latency included; at most a year.
  SteadyClock::duration length_of(std::int64_t bytes) const;

  /// Takes the link for so long, from the first moment on at which it is free,
  /// and not before the earliest. Gives that moment.
  ///
  /// It may lie in the past: whoever asks late gets what was free then, so that
  /// transfers do not depend on when their ranks look. Of times long past only
  /// the last few are remembered as taken.
  SteadyClock::time_point take(SteadyClock::time_point earliest,
                               SteadyClock::duration length);

 private:
  struct Span {
    SteadyClock::time_point begin;
    SteadyClock::time_point end;
  };

  void insert(std::size_t place, Span taken);

  SimulatedLink link_;
  std::mutex mutex_;
  std::vector<Span> taken_;  // ascending, apart from one another
};

}  // namespace kzero::detail
