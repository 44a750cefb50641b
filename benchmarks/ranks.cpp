// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "ranks.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <kzero/error.hpp>
#include <new>
#include <thread>

namespace kzero::bench {

namespace {

// Of one machine: the same clock for all ranks.
double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr double yielding_seconds = 0.05;
constexpr auto nap = std::chrono::microseconds(500);

}  // namespace

struct alignas(64) Ranks::Times {
  double begin = 0;
  double end = 0;
};

struct alignas(64) Ranks::Shared {
  std::atomic<int> arrived{0};
  std::atomic<int> turn{0};
};

Ranks::Ranks() {
  MPI_Comm machine = MPI_COMM_NULL;
  int here = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                      &machine);
  MPI_Comm_size(machine, &here);
  MPI_Comm_rank(machine, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (here != size_) {
    MPI_Comm_free(&machine);
    throw InvalidArgument(
        "the ranks are on several machines: start this case on one");
  }
  const auto bytes = static_cast<MPI_Aint>(
      rank_ == 0
          ? sizeof(Shared) + sizeof(Times) * static_cast<std::size_t>(size_)
          : 0);
  void* base = nullptr;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, machine, &base, &window_);
  MPI_Aint first_bytes = 0;
  int unit = 0;
  MPI_Win_shared_query(window_, 0, &first_bytes, &unit, &base);
  shared_ = static_cast<Shared*>(base);
  if (rank_ == 0) {
    new (shared_) Shared;
    for (int r = 0; r < size_; ++r) new (&times(r)) Times;
  }
  MPI_Barrier(machine);
  MPI_Comm_free(&machine);
}

Ranks::~Ranks() {
  // It waits for the others, which an error of this rank does not reach.
  if (std::uncaught_exceptions() == 0) MPI_Win_free(&window_);
}

std::string Ranks::text() const {
  return std::to_string(size_) + (size_ == 1 ? " rank" : " ranks");
}

Ranks::Times& Ranks::times(int rank) {
  return reinterpret_cast<Times*>(shared_ + 1)[rank];
}

void Ranks::meet() {
  const int turn = shared_->turn.load(std::memory_order_acquire);
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    shared_->turn.store(turn + 1, std::memory_order_release);
    return;
  }
  const double begin = now();
  while (shared_->turn.load(std::memory_order_acquire) == turn) {
    if (now() - begin < yielding_seconds)
      sched_yield();
    else
      std::this_thread::sleep_for(nap);
  }
}

double Ranks::time(const std::function<void()>& work) {
  meet();
  meet();  // Nobody naps any more.
  times(rank_).begin = now();
  work();
  times(rank_).end = now();
  meet();
  double begin = times(0).begin;
  double end = times(0).end;
  for (int r = 1; r < size_; ++r) {
    begin = std::min(begin, times(r).begin);
    end = std::max(end, times(r).end);
  }
  meet();
  return end - begin;
}

double Ranks::time_of_each(int calls, const std::function<void()>& work) {
  return time([&] {
           for (int i = 0; i < calls; ++i) work();
         }) /
         calls;
}

double Ranks::sum(double mine) {
  meet();
  times(rank_).begin = mine;
  meet();
  double total = 0;
  for (int r = 0; r < size_; ++r) total += times(r).begin;
  meet();
  return total;
}

double Ranks::from_first(double value) {
  if (rank_ == 0) times(0).begin = value;
  meet();
  value = times(0).begin;
  meet();
  return value;
}

}  // namespace kzero::bench
