// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Pages of 2 MiB, where the system has them. Nothing here can fail: without
// them memory is slower, and the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kzero::detail {

inline constexpr std::int64_t huge_page = std::int64_t{2} << 20;

/// For the huge pages that lie in this memory as a whole, so that nobody pays
/// for one that was not asked for. Before the memory is touched.
void ask_for_huge_pages(void* memory, std::int64_t bytes);

/// Touches memory for the first time, of which page is a whole huge page. Of
/// memory that processes share, Linux makes one of it from 6.1 on, whatever
/// shmem_enabled says; the calling thread's part of the machine is where it
/// lies.
void touch_huge_page(std::byte* page);

}  // namespace kzero::detail
