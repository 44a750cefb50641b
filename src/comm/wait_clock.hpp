// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Measures a wait for other ranks.
#pragma once

#include <chrono>
#include <string>

namespace kzero::detail {

/// Elapsed time, looked at once a poll. A gap between two polls counts as one
/// second at most: a process that was itself stopped (a suspended job, a
/// debugger) has learnt nothing about its peers meanwhile.
class WaitClock {
 public:
  explicit WaitClock(std::chrono::milliseconds limit);

  /// To be called after a poll that found nothing.
  bool expired();

  /// The limit, for messages: "2.0 s".
  std::string text() const;

 private:
  std::chrono::nanoseconds limit_;
  std::chrono::nanoseconds elapsed_{0};
  std::chrono::steady_clock::time_point last_;
};

}  // namespace kzero::detail
