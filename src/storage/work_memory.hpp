// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Memory that a step computes in and that means nothing between steps.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <kzero/parameter_view.hpp>

namespace kzero::detail {

class WorkMemory {
 public:
  WorkMemory() = default;
  /// bytes: 0 or more; what is there is unspecified.
  explicit WorkMemory(std::int64_t bytes);
  ~WorkMemory();
  WorkMemory(WorkMemory&& other) noexcept;
  WorkMemory& operator=(WorkMemory&& other) noexcept;

  /// Aligned for any type; null where there are no bytes.
  std::byte* data() const {
    return reinterpret_cast<std::byte*>(array_.data());
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  // Of doubles, whatever is computed there.
  using Array = Kokkos::View<double*, typename ExecutionSpace::memory_space>;
  void release() noexcept;

  Array array_;
  std::int64_t bytes_ = 0;
};

}  // namespace kzero::detail
