// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Hashes by which ranks compare what they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kzero::detail {

/// XXH3, 64 bits, of bytes, continuing from an earlier hash.
std::uint64_t hash(const void* data, std::size_t bytes, std::uint64_t seed = 0);

inline std::uint64_t hash(std::string_view text, std::uint64_t seed = 0) {
  return hash(text.data(), text.size(), seed);
}

}  // namespace kzero::detail
