// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/all_progress.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace kzero::detail {
namespace {

struct All {
  std::mutex mutex;
  std::vector<Progressing*> list;
};

// Never destroyed: communicators may be of static storage.
All& all() {
  static auto& instance = *new All;
  return instance;
}

}  // namespace

void Progressing::enlist() {
  const std::lock_guard lock(all().mutex);
  all().list.push_back(this);
}

void Progressing::dismiss() noexcept {
  const std::lock_guard lock(all().mutex);
  std::erase(all().list, this);
}

// Who holds the lock is at it.
void let_all_go_on() noexcept {
  const std::unique_lock lock(all().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (Progressing* each : all().list) each->try_to_go_on();
}

}  // namespace kzero::detail
