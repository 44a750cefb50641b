// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Writes past the caches, for memory that is much larger than they are: lines
// are not read before they are written, and push nothing out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kzero::detail {

/// Bytes from which on it pays.
inline constexpr std::int64_t large_stream = std::int64_t{6} << 20;

void stream_zeros(std::byte* to, std::int64_t bytes);
void stream_copy(std::byte* to, const std::byte* from, std::int64_t bytes);

}  // namespace kzero::detail
