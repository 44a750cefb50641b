// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_seats.hpp"

#include <limits>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#else
#include <thread>
#endif

namespace kzero::detail {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint32_t>) == 4);

#ifdef __linux__

// The bell changes before sleepers are looked at, and a sleeper is counted
// before the kernel compares the bell: one of the two sees the other.
void NodeSeats::ring() const noexcept {
  NodeSeat& seat = mine();
  seat.bell.fetch_add(1, std::memory_order_seq_cst);
  if (seat.sleepers.load(std::memory_order_seq_cst) == 0) return;
  (void)syscall(SYS_futex, &seat.bell, FUTEX_WAKE,
                std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void NodeSeats::sleep(int rank, std::uint32_t bell,
                      std::chrono::nanoseconds longest) const noexcept {
  NodeSeat& other = seat(rank);
  timespec time{};
  time.tv_nsec = static_cast<long>(longest.count());
  other.sleepers.fetch_add(1, std::memory_order_seq_cst);
  (void)syscall(SYS_futex, &other.bell, FUTEX_WAIT, bell, &time, nullptr, 0);
  other.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

#else

void NodeSeats::ring() const noexcept {
  mine().bell.fetch_add(1, std::memory_order_seq_cst);
}

void NodeSeats::sleep(int, std::uint32_t,
                      std::chrono::nanoseconds) const noexcept {
  std::this_thread::yield();
}

#endif

}  // namespace kzero::detail
