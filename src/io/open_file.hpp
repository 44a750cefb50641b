// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reads and writes at places of a file. Signals do not interrupt them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

namespace kzero::detail {

/// The text of an errno value.
std::string error_text(int error);

/// Owns a descriptor. Any number of threads may read and write.
class OpenFile {
 public:
  OpenFile() = default;
  /// With the flags of open(2), and O_CLOEXEC. is_open() is false when it
  /// cannot be opened: errno tells. Does not wait.
  OpenFile(const std::filesystem::path& path, int flags);
  ~OpenFile() { static_cast<void>(close()); }
  OpenFile(OpenFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  /// Where a write has stopped, and why: an errno, 0 for none.
  struct Outcome {
    int error = 0;
    std::int64_t place = 0;
  };
  Outcome write(std::int64_t place, const void* data,
                std::int64_t bytes) const noexcept;
  /// Bytes behind the end of the file are an error, EIO.
  Outcome read(std::int64_t place, void* data,
               std::int64_t bytes) const noexcept;

  /// Memory, the rest of which lies elsewhere.
  struct Part {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };
  /// At most this many parts at a time.
  static constexpr std::size_t most_parts = 512;
  /// All parts, which lie side by side in the file.
  Outcome write(std::int64_t place, std::span<const Part> parts) const noexcept;
  Outcome read(std::int64_t place, std::span<const Part> parts) const noexcept;

  // These return an errno, 0 for none.
  int sync() const noexcept;
  int resize(std::int64_t bytes) const noexcept;
  /// Network file systems report here what they could not write.
  int close() noexcept;

  /// -1 when it cannot be told.
  std::int64_t size() const noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace kzero::detail
