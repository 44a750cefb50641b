// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What happened when on one rank: the events of transfers and steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace kzero {

/// ready: a parameter was marked; index is the parameter's.
/// reduce_begin: a bucket's reduction was started; reduce_end: it has been
/// added up. gather_begin and gather_end likewise; index is the bucket's.
/// read_begin, read_end: parameter() or wait_parameter() waited for the bucket.
/// step_begin, step_end: index counts the calls of step() from 0.
enum class TraceKind {
  ready,
  reduce_begin,
  reduce_end,
  gather_begin,
  gather_end,
  read_begin,
  read_end,
  step_begin,
  step_end
};

struct TraceEvent {
  TraceKind kind = TraceKind::ready;
  std::int64_t index = 0;
  std::chrono::steady_clock::time_point time;
};

/// Grows by one event at a time until it is cleared; any thread may call it.
class Trace {
 public:
  /// Without memory for it the event is lost.
  void record(TraceKind kind, std::int64_t index) noexcept;
  void clear();
  /// In the order in which they were recorded.
  std::vector<TraceEvent> events() const;

 private:
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
};

}  // namespace kzero
