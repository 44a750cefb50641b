// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Cuts an N-d array into boxes that lie in one stretch of memory each, so that
// no single call moves more bytes than HDF5 and MPI-IO can take.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <vector>

namespace kzero::detail {

/// A box of the array: elements [offset, offset + size) in C order.
struct ArrayPiece {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::vector<hsize_t> start;
  std::vector<hsize_t> count;
};

/// Pieces of at most limit (1 or more) elements, in ascending order, together
/// all elements. None for an array without elements. A scalar (no extents) is
/// one piece without start and count.
std::vector<ArrayPiece> array_pieces(std::span<const std::int64_t> extents,
                                     std::int64_t limit);

}  // namespace kzero::detail
