// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/external_view.hpp>
#include <mutex>
#include <vector>

namespace kzero::detail {

void keep_forever(const void* object) noexcept {
  try {
    static std::mutex mutex;
    static auto& kept = *new std::vector<const void*>;
    const std::lock_guard lock(mutex);
    kept.push_back(object);
  } catch (...) {
    // It is kept all the same.
  }
}

}  // namespace kzero::detail
