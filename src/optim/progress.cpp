// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/progress.hpp"

#include <signal.h>

#include <chrono>
#include <utility>

#include "optim/spare_core.hpp"

namespace kzero::detail {
namespace {

// Passes without success after which the thread leaves its core to others, for
// a time that is short against a message.
constexpr int eager_passes = 1000;
constexpr std::chrono::microseconds nap{20};

}  // namespace

ProgressThread::~ProgressThread() { stop(); }

void ProgressThread::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(signal_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Signals are the caller's threads' business.
void ProgressThread::start(std::function<Advance()> pass) {
  pass_ = std::move(pass);
  sigset_t all;
  sigset_t before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  use_cores_of_process(thread_);
}

void ProgressThread::wake() {
  if (!running()) return;
  {
    const std::lock_guard lock(signal_);
    ++wakes_;
  }
  changed_.notify_all();
}

bool ProgressThread::wait_for_work(bool idle, std::int64_t& seen) {
  std::unique_lock lock(signal_);
  changed_.wait(lock, [&] {
    return stop_ || (turns_ == 0 && (!idle || wakes_ != seen));
  });
  seen = wakes_;
  return !stop_;
}

// Under the lock, so that who has it next knows of a failure.
bool ProgressThread::run_pass(Advance& met) noexcept {
  const std::lock_guard lock(working_);
  try {
    met = pass_();
    return true;
  } catch (...) {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
    return false;
  }
}

void ProgressThread::run() {
  Advance last = Advance::idle;
  std::int64_t seen = 0;
  int fruitless = 0;
  while (wait_for_work(last == Advance::idle, seen)) {
    if (!run_pass(last)) return;
    fruitless = last == Advance::moved ? 0 : fruitless + 1;
    if (fruitless < eager_passes)
      std::this_thread::yield();
    else if (last == Advance::waiting)
      std::this_thread::sleep_for(nap);
  }
}

ProgressThread::Turn::Turn(ProgressThread& progress, Failure failure)
    : progress_(progress) {
  if (progress_.running()) {
    {
      const std::lock_guard lock(progress_.signal_);
      ++progress_.turns_;
    }
    lock_ = std::unique_lock(progress_.working_);
  }
  if (failure == Failure::left || !progress_.failed()) return;
  give_back();
  progress_.check();
}

ProgressThread::Turn::~Turn() { give_back(); }

void ProgressThread::Turn::give_back() noexcept {
  if (!lock_.owns_lock()) return;
  lock_.unlock();
  {
    const std::lock_guard lock(progress_.signal_);
    --progress_.turns_;
    ++progress_.wakes_;
  }
  progress_.changed_.notify_all();
}

}  // namespace kzero::detail
