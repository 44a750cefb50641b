// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Memory for messages: aligned, on huge pages where it is large, and not given
// back while a peer may still write to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/health.hpp"

namespace kzero::detail {

/// Aligned to 64 bytes, from 2 MiB on to 2 MiB; not initialised. Throws Error
/// when there is no memory, InvalidArgument for a negative size. To be given
/// back by free_aligned.
void* allocate_aligned(std::int64_t bytes);

void free_aligned(void* memory) noexcept;

/// Never gives it back. It stays reachable, so that leak checkers do not take
/// this for a mistake.
void leak(void* memory) noexcept;

/// Memory that is leaked when the communicator, or one that uses the same
/// memory, is broken at the end of its life.
std::shared_ptr<void> allocate_shared(std::int64_t bytes,
                                      std::shared_ptr<const Health> health);

/// A work space that grows to what is asked for and is kept. Leaked when the
/// communicator is broken.
class WorkSpace {
 public:
  explicit WorkSpace(std::shared_ptr<const Health> health);
  ~WorkSpace();
  WorkSpace(const WorkSpace&) = delete;
  WorkSpace& operator=(const WorkSpace&) = delete;

  /// At least so many bytes. What was in it is lost when it grows.
  std::byte* reserve(std::int64_t bytes);

  std::int64_t capacity() const { return capacity_; }

 private:
  std::shared_ptr<const Health> health_;
  void* data_ = nullptr;
  std::int64_t capacity_ = 0;
};

}  // namespace kzero::detail
