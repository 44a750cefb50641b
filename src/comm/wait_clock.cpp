// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/wait_clock.hpp"

#include <algorithm>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

// Whoever wants no bound gives the largest number, which has too many
// nanoseconds.
constexpr std::chrono::milliseconds longest = std::chrono::hours(1000000);

}  // namespace

WaitClock::WaitClock(std::chrono::milliseconds limit)
    : limit_(std::min(limit, longest)),
      last_(std::chrono::steady_clock::now()) {}

bool WaitClock::expired() {
  const auto now = std::chrono::steady_clock::now();
  elapsed_ +=
      std::min<std::chrono::nanoseconds>(now - last_, std::chrono::seconds(1));
  last_ = now;
  return elapsed_ >= limit_;
}

std::string WaitClock::text() const {
  const auto tenths = limit_ / std::chrono::milliseconds(100);
  return concat(tenths / 10, '.', tenths % 10, " s");
}

}  // namespace kzero::detail
