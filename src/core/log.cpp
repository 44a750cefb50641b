// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "core/log.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "core/message.hpp"

namespace kzero {

namespace {

struct State {
  std::atomic<bool> enabled = false;
  std::atomic<std::int64_t> lost = 0;
  std::mutex mutex;  // of handler
  std::shared_ptr<const LogHandler> handler;
};

// Never destroyed: objects of static storage may still log at exit.
State& state() {
  static State& instance = *new State;
  return instance;
}

std::shared_ptr<const LogHandler> current_handler() {
  const std::lock_guard lock(state().mutex);
  return state().handler;
}

}  // namespace

void set_log_handler(LogHandler handler) {
  std::shared_ptr<const LogHandler> next;
  if (handler) next = std::make_shared<const LogHandler>(std::move(handler));
  const bool enabled = next != nullptr;
  {
    const std::lock_guard lock(state().mutex);
    state().handler.swap(next);
    state().enabled.store(enabled, std::memory_order_relaxed);
  }
  // The former handler dies here, outside the lock: what it captured may log.
}

namespace detail {

bool log_enabled() noexcept {
  return state().enabled.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message) noexcept {
  if (!log_enabled()) return;
  std::int64_t lost = 0;
  try {
    // Called without the lock: a handler may wait for a lock of its own that
    // another thread holds while it logs, and may set another handler.
    const std::shared_ptr<const LogHandler> handler = current_handler();
    if (!handler) return;
    lost = state().lost.exchange(0, std::memory_order_relaxed);
    if (lost > 0) {
      (*handler)(LogLevel::warning,
                 concat(counted(lost, "log message"),
                        " lost (the log handler threw an exception): a handler "
                        "must not throw"));
      lost = 0;
    }
    (*handler)(level, message);
  } catch (...) {
    state().lost.fetch_add(lost + 1, std::memory_order_relaxed);
  }
}

}  // namespace detail

}  // namespace kzero
