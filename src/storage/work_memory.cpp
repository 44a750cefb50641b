// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "storage/work_memory.hpp"

#include <kzero/external_view.hpp>
#include <string>
#include <utility>

#include "storage/kokkos_support.hpp"

namespace kzero::detail {

WorkMemory::WorkMemory(std::int64_t bytes) : bytes_((bytes + 7) / 8 * 8) {
  if (bytes_ == 0) return;
  array_ = Array(Kokkos::view_alloc(Kokkos::WithoutInitializing,
                                    std::string("kzero::work")),
                 static_cast<std::size_t>(bytes_ / 8));
}

WorkMemory::~WorkMemory() { release(); }

WorkMemory::WorkMemory(WorkMemory&& other) noexcept
    : array_(std::exchange(other.array_, Array())),
      bytes_(std::exchange(other.bytes_, 0)) {}

WorkMemory& WorkMemory::operator=(WorkMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  array_ = std::exchange(other.array_, Array());
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

// Kokkos aborts when a view is freed after Kokkos::finalize(): it is kept then.
void WorkMemory::release() noexcept {
  if (bytes_ > 0 && !Kokkos::is_initialized())
    keep_forever(new Array(std::move(array_)));
}

}  // namespace kzero::detail
