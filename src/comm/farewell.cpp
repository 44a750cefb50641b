// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/farewell.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/at_finalize.hpp"
#include "comm/check_mpi.hpp"
#include "comm/meeting.hpp"
#include "comm/wait_clock.hpp"

namespace kzero::detail {

namespace {

/// Of one set of ranks.
struct Farewell {
  explicit Farewell(std::chrono::milliseconds limit) : timeout(limit) {}

  /// True when there is nothing left to wait for.
  bool has_ended() {
    for (Meeting& meeting : meetings) {
      if (meeting.has_ended()) return true;
    }
    return false;
  }

  std::chrono::milliseconds timeout;
  /// More than one where some ranks have failed to make the first: each knows
  /// of one at least that all know of.
  std::vector<MPI_Comm> communicators;
  std::list<Meeting> meetings;
};

struct Farewells {
  std::mutex mutex;
  bool will_be_held = false;
  std::list<Farewell> all;
};

// Never destroyed: MPI may end when objects of static storage are gone, and
// late messages may be written to what it holds.
Farewells& farewells() {
  static auto& instance = *new Farewells;
  return instance;
}

Farewell* find(MPI_Comm communicator) {
  for (Farewell& farewell : farewells().all) {
    int result = MPI_UNEQUAL;
    check_mpi(
        MPI_Comm_compare(farewell.communicators.front(), communicator, &result),
        "MPI_Comm_compare");
    if (result != MPI_UNEQUAL) return &farewell;
  }
  return nullptr;
}

void hold(std::list<Farewell>& all) {
  std::chrono::milliseconds longest(0);
  for (Farewell& farewell : all) {
    longest = std::max(longest, farewell.timeout);
    for (const MPI_Comm communicator : farewell.communicators) {
      farewell.meetings.emplace_back(communicator);
    }
  }
  // A rank that waits for another in vain comes after its timeout. (As long as
  // it likes: WaitClock has a bound of its own.)
  const std::chrono::milliseconds more = std::chrono::seconds(5);
  WaitClock clock(longest > std::chrono::milliseconds::max() - more
                      ? longest
                      : longest + more);
  // All at a time, because ranks may have made them in another order.
  while (true) {
    const auto left =
        std::count_if(all.begin(), all.end(),
                      [](Farewell& farewell) { return !farewell.has_ended(); });
    if (left == 0 || clock.expired()) return;
    // The others may still have work to do on these cores.
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void hold_all() {
  try {
    const std::lock_guard lock(farewells().mutex);
    hold(farewells().all);
  } catch (...) {
    // Then MPI_Finalize goes on as it would have done.
  }
}

}  // namespace

bool has_farewell(MPI_Comm communicator) {
  const std::lock_guard lock(farewells().mutex);
  return find(communicator) != nullptr;
}

void meet_at_finalize(MPI_Comm communicator,
                      std::chrono::milliseconds timeout) {
  const std::lock_guard lock(farewells().mutex);
  Farewell* farewell = find(communicator);
  if (farewell == nullptr) farewell = &farewells().all.emplace_back(timeout);
  farewell->communicators.push_back(communicator);
  if (!farewells().will_be_held) call_at_finalize(hold_all);
  farewells().will_be_held = true;
}

}  // namespace kzero::detail
