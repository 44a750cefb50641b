// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The optimizer's own thread, which goes on with transfers while the caller
// computes, and how the two take turns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace kzero::detail {

/// What a pass over the transfers has met.
/// idle: there are none. waiting: there are, and none could go on.
enum class Advance { idle, waiting, moved };

/// Without start() there is no thread, and everything here costs nothing.
class ProgressThread {
 public:
  ProgressThread() = default;
  /// Waits for the pass that the thread is in, which waits for no other rank.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Ends the thread, as the destructor does.
  void stop() noexcept;
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  /// The thread calls pass again and again while there are transfers. Its first
  /// exception ends it, and is what check() and take() throw from then on.
  void start(std::function<Advance()> pass);

  bool running() const { return thread_.joinable(); }

  /// There may be new transfers.
  void wake();

  /// Throws what the thread has met.
  void check() const {
    if (failed()) std::rethrow_exception(error_);
  }

  /// As long as it lives the thread does nothing, and transfers are the
  /// caller's.
  class Turn {
   public:
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class ProgressThread;
    enum class Failure { thrown, left };
    Turn(ProgressThread& progress, Failure failure);
    void give_back() noexcept;
    ProgressThread& progress_;
    std::unique_lock<std::mutex> lock_;
  };

  /// Waits for the pass that the thread is in. Throws as check() does, also
  /// what that pass has met.
  Turn take() { return {*this, Turn::Failure::thrown}; }

  /// take() for what must not throw.
  Turn take_quietly() noexcept { return {*this, Turn::Failure::left}; }

 private:
  void run();
  /// What a pass has met. False when it failed.
  bool run_pass(Advance& met) noexcept;
  /// False when the thread is to end.
  bool wait_for_work(bool idle, std::int64_t& seen);

  std::function<Advance()> pass_;
  std::mutex working_;  // held during a pass and a turn
  mutable std::mutex signal_;
  std::condition_variable changed_;
  bool stop_ = false;       // under signal_, like the next two
  std::int64_t wakes_ = 0;  // calls of wake()
  std::int64_t turns_ = 0;  // wanted or taken by the caller
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace kzero::detail
