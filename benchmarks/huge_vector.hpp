// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Arrays of peers and limits, in huge pages where the system gives them: they
// are to be no slower than they can be.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace kzero::bench {

template <class T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <class U>
  explicit HugePages(const HugePages<U>&) {}

  T* allocate(std::size_t count) {
    constexpr std::size_t page = std::size_t{2} << 20;
    const std::size_t bytes = (count * sizeof(T) + page - 1) / page * page;
    void* const memory = std::aligned_alloc(page, bytes);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);  // A wish.
#endif
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t) { std::free(memory); }

  friend bool operator==(const HugePages&, const HugePages&) { return true; }
};

template <class T>
using HugeVector = std::vector<T, HugePages<T>>;

}  // namespace kzero::bench
