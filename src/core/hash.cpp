// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "core/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kzero::detail {

std::uint64_t hash(const void* data, std::size_t bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

}  // namespace kzero::detail
