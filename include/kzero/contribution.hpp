// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a reduction ends as: sources that are still to be added up.
#pragma once

#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/range.hpp>
#include <span>

namespace kzero {

/// The sum of an aligned block of ranks' gradients: of one rank, or of
/// rank_count = 2^k ranks from first_rank = a multiple of 2^k on. Sums of
/// several ranks are float64 for float64 gradients, and float32 for all others.
struct Contribution {
  const void* data = nullptr;
  int first_rank = 0;
  int rank_count = 1;
};

/// What all ranks contribute to a piece of this rank's shard: the parts follow
/// one another in rank order, and together are all ranks. Nothing is added up
/// yet, or only whole subtrees of the ordered sum.
struct Contributions {
  std::span<const Contribution> parts;
  DType dtype = DType::float32;  // of every part of one rank
  Range range;                   // elements of the shard

  DType dtype_of(const Contribution& part) const {
    return part.rank_count == 1 ? dtype : main_dtype(dtype);
  }
};

/// Adds up parts by the ordered sum: count elements into out, float64 for
/// float64 gradients and float32 for all others. Any thread may call it.
using OrderedSum = void (*)(std::span<const Contribution> parts, DType dtype,
                            std::int64_t count, void* out);

}  // namespace kzero
