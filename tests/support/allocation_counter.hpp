// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Counts the calls of operator new, and of posix_memalign and ftruncate, by
// which the library takes its large buffers, and the bytes that they give; can
// refuse memory. Include it in one file of a program: it replaces them.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace kzero::test {

inline std::atomic<bool> counting_allocations = false;
inline std::atomic<std::int64_t> counted_allocations = 0;
inline std::atomic<std::int64_t> counted_bytes = 0;
/// An allocation of exactly so many bytes fails, unless 0.
inline std::atomic<std::size_t> refused_bytes = 0;

/// Allocations, of all threads, while body runs.
template <class F>
std::int64_t allocations_of(F&& body) {
  counted_allocations = 0;
  counted_bytes = 0;
  counting_allocations = true;
  body();
  counting_allocations = false;
  return counted_allocations;
}

/// Bytes of them, whether or not they are given back.
template <class F>
std::int64_t allocated_bytes_of(F&& body) {
  allocations_of(body);
  return counted_bytes;
}

/// Whether there is memory for it.
inline bool count_allocation(std::size_t bytes) {
  if (counting_allocations) {
    ++counted_allocations;
    counted_bytes += static_cast<std::int64_t>(bytes);
  }
  return bytes == 0 || bytes != refused_bytes;
}

// Never inlined: the compiler would warn of malloc beside delete.
[[gnu::noinline]] inline void* counted_new(std::size_t bytes,
                                           std::size_t alignment) {
  if (!count_allocation(bytes)) throw std::bad_alloc();
  const std::size_t room = (bytes / alignment + 1) * alignment;
  void* memory = std::aligned_alloc(alignment, room);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

[[gnu::noinline]] inline void counted_delete(void* memory) {
  std::free(memory);
}

}  // namespace kzero::test

void* operator new(std::size_t bytes) {
  return kzero::test::counted_new(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return kzero::test::counted_new(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  kzero::test::counted_delete(memory);
}
void operator delete(void* memory) noexcept {
  kzero::test::counted_delete(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  kzero::test::counted_delete(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  kzero::test::counted_delete(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  kzero::test::counted_delete(memory);
}

extern "C" int posix_memalign(void** memory, std::size_t alignment,
                              std::size_t bytes) noexcept {
  if (!kzero::test::count_allocation(bytes)) return ENOMEM;
  *memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  return *memory == nullptr ? ENOMEM : 0;
}

// Of memory that is shared: whole pages, huge ones from their size on.
extern "C" int ftruncate(int descriptor, off_t bytes) noexcept {
  const std::size_t refused = kzero::test::refused_bytes;
  const std::size_t page = refused < (std::size_t{2} << 20) ? 4096 : 2 << 20;
  const bool refuse =
      refused != 0 && (refused + page - 1) / page * page == std::size_t(bytes);
  if (!kzero::test::count_allocation(std::size_t(bytes)) || refuse) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_ftruncate, descriptor, bytes));
}
