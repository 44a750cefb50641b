// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/trace.hpp>
#include <new>

namespace kzero {

void Trace::record(TraceKind kind, std::int64_t index) noexcept {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  try {
    events_.push_back({kind, index, now});
  } catch (const std::bad_alloc&) {
    // A transfer must not end for this.
  }
}

void Trace::clear() {
  const std::lock_guard lock(mutex_);
  events_.clear();
}

std::vector<TraceEvent> Trace::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

}  // namespace kzero
