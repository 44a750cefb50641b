// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Loops that move the bytes of a step and compute nothing: what the memory
// allows.
#pragma once

#include <cstdint>
#include <span>

namespace kzero::bench {

/// Reads count numbers of every part, writes as many to out.
void move_as_sum(std::span<const void* const> parts, std::int64_t count,
                 void* out);

/// What an update of count 16-bit parameters moves, their gradients taken from
/// all parts: reads each part and three arrays of 32-bit numbers, writes these
/// three and the parameters.
struct UpdateStreams {
  std::span<const void* const> parts;  // gradients
  void* arrays[3] = {};                // keep their values
  void* parameters = nullptr;
  std::int64_t count = 0;
};
void move_as_update(const UpdateStreams& streams);

}  // namespace kzero::bench
