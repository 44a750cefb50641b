// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/huge_pages.hpp"

#ifdef __linux__
#include <sys/mman.h>

#include <fstream>
#include <string>
#endif

namespace kzero::detail {

#if defined(__linux__) && defined(MADV_HUGEPAGE)

namespace {

#ifdef MADV_COLLAPSE
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25;  // newer than the C library; an error where older
#endif

/// What who runs the machine has switched off stays so.
bool are_wanted() {
  static const bool wanted = [] {
    std::string setting;
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
                 setting);
    return setting.find("[never]") == std::string::npos;
  }();
  return wanted;
}

}  // namespace

void ask_for_huge_pages(void* memory, std::int64_t bytes) {
  constexpr auto size = static_cast<std::uintptr_t>(huge_page);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(bytes);
  const std::uintptr_t first = (begin + size - 1) / size * size;
  const std::uintptr_t last = end / size * size;
  if (first < last)
    (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

void touch_huge_page(std::byte* page) {
  *page = std::byte{};  // what has no page at all is left alone
  if (are_wanted())
    (void)madvise(page, static_cast<std::size_t>(huge_page), collapse);
}

#else

void ask_for_huge_pages(void*, std::int64_t) {}

void touch_huge_page(std::byte* page) { *page = std::byte{}; }

#endif

}  // namespace kzero::detail
