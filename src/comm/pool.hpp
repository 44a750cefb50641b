// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Operations are made once and used again: no allocation in a steady state.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace kzero::detail {

/// One that is free, or else a new one made from the arguments.
template <class T, class... Arguments>
T& take_free(std::vector<std::unique_ptr<T>>& pool, Arguments&&... arguments) {
  for (const auto& operation : pool) {
    if (operation->free()) return *operation;
  }
  return *pool.emplace_back(
      std::make_unique<T>(std::forward<Arguments>(arguments)...));
}

}  // namespace kzero::detail
