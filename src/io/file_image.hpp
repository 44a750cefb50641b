// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The bytes of a file to be, in memory: zeros, but for what was written. HDF5
// lays a checkpoint out here, and writes nothing else: the elements of the
// arrays never come here, and HDF5 never meets a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace kzero::detail {

class FileImage {
 public:
  /// Where there is no memory, has_failed() tells from then on.
  void write(std::int64_t place, const void* data, std::size_t bytes) noexcept;
  void read(std::int64_t place, void* data, std::size_t bytes) const noexcept;
  void resize(std::int64_t bytes) noexcept { size_ = bytes; }
  std::int64_t size() const { return size_; }
  bool has_failed() const { return failed_; }

  /// Calls f(place, bytes) for all that may not be zero, in ascending order.
  template <class F>
  void for_each_stretch(F&& f) const {
    for (const auto& [number, bytes] : pages_)
      f(number * page_bytes, std::span<const std::byte>(bytes));
  }

 private:
  static constexpr std::int64_t page_bytes = std::int64_t{64} << 10;

  /// Calls f(number of the page, first byte in it, first of the bytes, count).
  template <class F>
  static void for_each_page(std::int64_t place, std::size_t bytes, F&& f);

  std::map<std::int64_t, std::vector<std::byte>> pages_;
  std::int64_t size_ = 0;
  bool failed_ = false;
};

}  // namespace kzero::detail
