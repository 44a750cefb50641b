// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

auto space_handle() {
  return Kokkos::Profiling::make_space_handle(
      ExecutionSpace::memory_space::name());
}

}  // namespace

void announce_allocation(const char* label, const void* data,
                         std::int64_t bytes) {
  if (Kokkos::Profiling::profileLibraryLoaded())
    Kokkos::Profiling::allocateData(space_handle(), label, data,
                                    static_cast<std::uint64_t>(bytes));
}

void announce_deallocation(const char* label, const void* data,
                           std::int64_t bytes) {
  if (Kokkos::Profiling::profileLibraryLoaded())
    Kokkos::Profiling::deallocateData(space_handle(), label, data,
                                      static_cast<std::uint64_t>(bytes));
}

}  // namespace kzero::detail
