// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The bytes of a file to be, in memory: zeros, but for what was written. HDF5
// lays a checkpoint out here, and writes nothing else: the elements of the
// arrays never come here, and HDF5 never meets a disk. Copies share what they
// have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace kzero::detail {

class FileImage {
 public:
  /// Where there is no memory, has_failed() tells from then on.
  void write(std::int64_t place, const void* data, std::size_t bytes) noexcept;
  void read(std::int64_t place, void* data, std::size_t bytes) const noexcept;
  /// Calls f(place, bytes) for these, piece by piece in ascending order.
  template <class F>
  void for_each_piece(std::int64_t place, std::int64_t bytes, F&& f) const {
    for_each_page(
        place, static_cast<std::size_t>(bytes),
        [&](std::int64_t number, std::size_t in_page, std::size_t,
            std::size_t count) {
          f(number * page_bytes + static_cast<std::int64_t>(in_page),
            std::span<const std::byte>(page(number)).subspan(in_page, count));
        });
  }
  void resize(std::int64_t bytes) noexcept { size_ = bytes; }
  std::int64_t size() const { return size_; }
  bool has_failed() const { return failed_; }

 private:
  static constexpr std::int64_t page_bytes = std::int64_t{64} << 10;

  using Page = std::array<std::byte, page_bytes>;

  /// Calls f(number of the page, first byte in it, first of the bytes, count).
  template <class F>
  static void for_each_page(std::int64_t place, std::size_t bytes, F&& f) {
    for (std::size_t done = 0; done < bytes;) {
      const std::int64_t at = place + static_cast<std::int64_t>(done);
      const auto in_page = static_cast<std::size_t>(at % page_bytes);
      const std::size_t count = std::min(
          static_cast<std::size_t>(page_bytes) - in_page, bytes - done);
      f(at / page_bytes, in_page, done, count);
      done += count;
    }
  }

  const Page& page(std::int64_t number) const noexcept;
  /// One that no copy of this image shares.
  Page& own_page(std::int64_t number);

  std::map<std::int64_t, std::shared_ptr<Page>> pages_;
  std::int64_t size_ = 0;
  bool failed_ = false;
};

}  // namespace kzero::detail
