// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Elements of one number type as those of another.
#pragma once

#include <cstdint>
#include <kzero/dtype.hpp>

namespace kzero::detail {

/// Rounds to nearest, ties to even, as the types convert; float64 to 16 bits by
/// way of float32, which is the main parameter. Both sides lie anywhere and do
/// not overlap. Local, any thread.
void convert_elements(DType from, const void* source, DType to, void* out,
                      std::int64_t count);

}  // namespace kzero::detail
