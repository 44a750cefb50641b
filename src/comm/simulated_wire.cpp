// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/simulated_wire.hpp"

#include <algorithm>
#include <cstddef>

namespace kzero::detail {

namespace {

constexpr std::size_t most_spans = 64;

// So that sums of times do not overflow.
constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 365);

}  // namespace

SimulatedWire::SimulatedWire(const SimulatedLink& link) : link_(link) {
  taken_.reserve(most_spans + 1);
}

SteadyClock::duration SimulatedWire::length_of(std::int64_t bytes) const {
  const double nanoseconds =
      static_cast<double>(bytes) / link_.bytes_per_second * 1e9;
  if (nanoseconds >= static_cast<double>(longest.count())) return longest;
  const auto sending =
      std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
  return std::min(longest, std::min(longest, link_.latency) + sending);
}

SteadyClock::time_point SimulatedWire::take(SteadyClock::time_point earliest,
                                            SteadyClock::duration length) {
  const std::lock_guard lock(mutex_);
  SteadyClock::time_point begin = earliest;
  std::size_t place = 0;
  while (place < taken_.size() && taken_[place].begin < begin + length) {
    begin = std::max(begin, taken_[place].end);
    ++place;
  }
  if (length > SteadyClock::duration::zero()) {
    insert(place, {begin, begin + length});
  }
  return begin;
}

void SimulatedWire::insert(std::size_t place, Span taken) {
  // Spans that touch are one.
  if (place < taken_.size() && taken_[place].begin == taken.end) {
    taken.end = taken_[place].end;
    taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(place));
  }
  if (place > 0 && taken_[place - 1].end == taken.begin) {
    taken_[place - 1].end = taken.end;
    return;
  }
  taken_.insert(taken_.begin() + static_cast<std::ptrdiff_t>(place), taken);
  if (taken_.size() > most_spans) taken_.erase(taken_.begin());
}

}  // namespace kzero::detail
