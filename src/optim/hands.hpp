// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Who does the work on data that has come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <kzero/range.hpp>

#include "storage/kokkos_support.hpp"

namespace kzero::detail {

/// The threads of an execution space, or the calling thread alone: the
/// optimizer's own thread calls no Kokkos.
class Hands {
 public:
  Hands() = default;
  explicit Hands(const ExecutionSpace& space) : space_(&space) {}

  /// Null for the calling thread alone.
  const ExecutionSpace* space() const { return space_; }

  /// Threads; of a part of them that an instance has, those of all. To ask
  /// takes memory (Kokkos 4.6 makes an instance): once.
  std::int64_t count() const {
    static const std::int64_t threads = ExecutionSpace().concurrency();
    return space_ != nullptr ? threads : 1;
  }

  /// Calls body(i) for i in [begin, end) and waits.
  template <class Body>
  void for_each(const char* label, std::int64_t begin, std::int64_t end,
                const Body& body) const {
    if (space_ != nullptr) {
      for_each_index(label, *space_, begin, end, body);
    } else {
      for (std::int64_t i = begin; i < end; ++i) body(i);
    }
  }

  /// Calls body(range) for parts of so many, or fewer where there would be no
  /// part for each thread, and waits.
  template <class Body>
  void for_each_block(const char* label, Range all, std::int64_t size,
                      const Body& body) const {
    const std::int64_t block =
        std::clamp<std::int64_t>(all.size() / (4 * count()), 1, size);
    for_each(label, 0, (all.size() + block - 1) / block, [&](std::int64_t i) {
      body(intersect(all, shift({i * block, (i + 1) * block}, all.begin)));
    });
  }

 private:
  const ExecutionSpace* space_ = nullptr;
};

}  // namespace kzero::detail
