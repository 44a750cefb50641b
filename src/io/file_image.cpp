// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/file_image.hpp"

#include <algorithm>
#include <cstring>

namespace kzero::detail {

template <class F>
void FileImage::for_each_page(std::int64_t place, std::size_t bytes, F&& f) {
  for (std::size_t done = 0; done < bytes;) {
    const std::int64_t at = place + static_cast<std::int64_t>(done);
    const auto in_page = static_cast<std::size_t>(at % page_bytes);
    const std::size_t count =
        std::min(static_cast<std::size_t>(page_bytes) - in_page, bytes - done);
    f(at / page_bytes, in_page, done, count);
    done += count;
  }
}

void FileImage::write(std::int64_t place, const void* data,
                      std::size_t bytes) noexcept {
  size_ = std::max(size_, place + static_cast<std::int64_t>(bytes));
  const auto* const from = static_cast<const std::byte*>(data);
  try {
    for_each_page(place, bytes,
                  [&](std::int64_t number, std::size_t in_page,
                      std::size_t first, std::size_t count) {
                    std::vector<std::byte>& page = pages_[number];
                    page.resize(static_cast<std::size_t>(page_bytes));
                    std::memcpy(page.data() + in_page, from + first, count);
                  });
  } catch (...) {
    failed_ = true;
  }
}

void FileImage::read(std::int64_t place, void* data,
                     std::size_t bytes) const noexcept {
  auto* const out = static_cast<std::byte*>(data);
  for_each_page(place, bytes,
                [&](std::int64_t number, std::size_t in_page, std::size_t first,
                    std::size_t count) {
                  const auto page = pages_.find(number);
                  if (page == pages_.end() || page->second.empty())
                    std::memset(out + first, 0, count);
                  else
                    std::memcpy(out + first, page->second.data() + in_page,
                                count);
                });
}

}  // namespace kzero::detail
