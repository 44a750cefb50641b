// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What differs between Kokkos 3.4.01 and the newest, and the few shapes of
// Kokkos calls that the library uses. Labels have at most 15 characters, so
// that passing one allocates nothing.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <kzero/parameter_view.hpp>

namespace kzero::detail {

static_assert(
    Kokkos::SpaceAccessibility<
        Kokkos::HostSpace, typename ExecutionSpace::memory_space>::accessible,
    "this version of kzero needs a Kokkos whose default execution "
    "space runs on the host");

/// Waits for the work of this instance alone.
inline void fence(const ExecutionSpace& space,
                  [[maybe_unused]] const char* label) {
#if KOKKOS_VERSION >= 30500
  space.fence(label);
#else
  space.fence();
#endif
}

/// Calls body(i) for i in [begin, end) in parallel and waits.
template <class Body>
void for_each_index(const char* label, const ExecutionSpace& space,
                    std::int64_t begin, std::int64_t end, const Body& body) {
  if (begin >= end) return;
  using Policy =
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>,
                          Kokkos::Schedule<Kokkos::Static>>;
  Kokkos::parallel_for(label, Policy(space, begin, end), body);
  fence(space, label);
}

/// A named region for Kokkos Tools, until the end of the scope.
class Region {
 public:
  explicit Region(const char* name) { Kokkos::Profiling::pushRegion(name); }
  ~Region() { Kokkos::Profiling::popRegion(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

/// Tells Kokkos Tools of memory that Kokkos has not allocated itself.
void announce_allocation(const char* label, const void* data,
                         std::int64_t bytes);
void announce_deallocation(const char* label, const void* data,
                           std::int64_t bytes);

}  // namespace kzero::detail
