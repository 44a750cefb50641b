// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Memory that the arrays of a checkpoint pass through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/error.hpp>
#include <utility>

#include "comm/aligned_memory.hpp"

namespace kzero::detail {

/// Memory that peers write to.
class Staging {
 public:
  Staging() = default;
  ~Staging() { free_aligned(data_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void allocate(std::int64_t bytes) {
    data_ = static_cast<std::byte*>(allocate_aligned(bytes));
  }
  std::byte* data() { return data_; }

  /// Calls f, a collective on this memory. When it breaks off, peers may still
  /// write here: the memory is leaked.
  template <class F>
  void use(F&& f) {
    try {
      f();
    } catch (const CommunicationError&) {
      leak(std::exchange(data_, nullptr));
      throw;
    }
  }

 private:
  std::byte* data_ = nullptr;
};

}  // namespace kzero::detail
