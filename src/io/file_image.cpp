// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/file_image.hpp"

#include <atomic>
#include <cstring>

namespace kzero::detail {

const FileImage::Page& FileImage::page(std::int64_t number) const noexcept {
  static constexpr Page zeros{};
  const auto found = pages_.find(number);
  return found == pages_.end() || !found->second ? zeros : *found->second;
}

FileImage::Page& FileImage::own_page(std::int64_t number) {
  std::shared_ptr<Page>& page = pages_[number];
  if (!page)
    page = std::make_shared<Page>();
  else if (page.use_count() > 1)
    page = std::make_shared<Page>(*page);
  else
    // What another thread has read of it before it let it go.
    std::atomic_thread_fence(std::memory_order_acquire);
  return *page;
}

void FileImage::write(std::int64_t place, const void* data,
                      std::size_t bytes) noexcept {
  size_ = std::max(size_, place + static_cast<std::int64_t>(bytes));
  const auto* const from = static_cast<const std::byte*>(data);
  try {
    for_each_page(place, bytes,
                  [&](std::int64_t number, std::size_t in_page,
                      std::size_t first, std::size_t count) {
                    std::memcpy(own_page(number).data() + in_page, from + first,
                                count);
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
                  std::memcpy(out + first, page(number).data() + in_page,
                              count);
                });
}

}  // namespace kzero::detail
