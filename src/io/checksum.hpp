// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The checksum of checkpoint files. It is a sum: that of an array is the sum of
// those of its parts, whoever has computed them, in any order, wherever the
// array is cut.
#pragma once

#include <cstdint>

namespace kzero::detail {

/// What bytes that begin at this place of an array add to the array's
/// checksum: the sum, modulo 2^64, of each 32-bit little-endian word times an
/// odd 64-bit key of its place (multilinear hashing; Lemire and Kaser,
/// "Strongly universal string hashing is fast", 2014). Bytes of a word that are
/// not among these count as zeros. One changed byte always changes the
/// checksum; zeros add nothing, so that the length has to be known.
/// docs/checkpoint_format.md has the keys.
std::uint64_t checksum(std::int64_t place, const void* data,
                       std::int64_t bytes);

}  // namespace kzero::detail
