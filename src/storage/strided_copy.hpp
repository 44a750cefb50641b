// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Copies between an array with strides and memory without gaps. No Kokkos, no
// allocation, any thread.
#pragma once

#include <cstdint>
#include <kzero/external_array.hpp>
#include <kzero/range.hpp>

namespace kzero::detail {

/// Elements [range) of the array, of at most 8 extents, in C order of its
/// indices, whatever the strides. The other side has range.size() elements of
/// the array's type, the first of range at its begin.
void read_elements(const ExternalArray& from, Range range, void* to);
void write_elements(const ExternalArray& to, Range range, const void* from);

/// Sets these elements to zero.
void fill_zero(const ExternalArray& array, Range range);

/// Elements that one thread should copy at once: so many that what lies side by
/// side in memory is used together.
std::int64_t block_elements(const ExternalArray& array);

}  // namespace kzero::detail
