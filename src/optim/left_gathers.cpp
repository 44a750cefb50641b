// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/left_gathers.hpp"

#include <algorithm>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>

#include "comm/at_finalize.hpp"
#include "comm/wait_clock.hpp"
#include "optim/optimizer_core.hpp"

namespace kzero::detail {
namespace {

struct LeftGathers {
  std::mutex mutex;
  std::list<std::unique_ptr<OptimizerCore>> all;
  std::list<OptimizerCore*> alive;
  bool at_finalize = false;
};

// Never destroyed: MPI may end when objects of static storage are gone.
LeftGathers& left() {
  static auto& instance = *new LeftGathers;
  return instance;
}

// What has failed is over as well.
bool has_ended(OptimizerCore& core) {
  try {
    return !core.advance_left_gathers();
  } catch (...) {
    return true;
  }
}

void advance() {
  std::erase_if(left().all, [](const auto& core) { return has_ended(*core); });
}

void wait_for_all() {
  try {
    const std::lock_guard lock(left().mutex);
    std::list<OptimizerCore*> alive;
    for (OptimizerCore* core : left().alive)
      if (core->end_transfers()) alive.push_back(core);
    std::chrono::milliseconds longest(0);
    for (const auto& core : left().all)
      longest = std::max(longest, core->communicator->timeout());
    for (const OptimizerCore* core : alive)
      longest = std::max(longest, core->communicator->timeout());
    WaitClock clock(longest);
    while (true) {
      advance();
      std::erase_if(alive,
                    [](OptimizerCore* core) { return has_ended(*core); });
      if ((left().all.empty() && alive.empty()) || clock.expired()) break;
      std::this_thread::yield();
    }
    left().all.clear();
  } catch (...) {
    // Then MPI_Finalize goes on as it would have done.
  }
}

}  // namespace

void finish_later(std::unique_ptr<OptimizerCore> core) {
  const std::lock_guard lock(left().mutex);
  left().all.push_back(std::move(core));
  advance();
}

void remember(OptimizerCore& core) {
  if (core.communicator->size() == 1) return;
  const std::lock_guard lock(left().mutex);
  if (!left().at_finalize) {
    call_at_finalize(wait_for_all);
    left().at_finalize = true;
  }
  left().alive.push_back(&core);
}

void forget(OptimizerCore& core) noexcept {
  const std::lock_guard lock(left().mutex);
  std::erase(left().alive, &core);
}

void advance_left_gathers() {
  const std::lock_guard lock(left().mutex);
  advance();
}

void EndOfCore::operator()(OptimizerCore* core) const noexcept {
  std::unique_ptr<OptimizerCore> owned(core);
  forget(*core);
  try {
    if (owned->leave_gathers()) finish_later(std::move(owned));
  } catch (...) {
    // Then what is under way is dropped.
  }
}

}  // namespace kzero::detail
