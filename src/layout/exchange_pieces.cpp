// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/exchange_pieces.hpp"

#include <algorithm>
#include <iterator>

namespace kzero::detail {
Pieces reduction_pieces(const Plan& plan, std::int64_t bucket) {
  return cut_reduction(
      plan.shards(bucket),
      {.element_bytes = size_of(plan.buffer_of(bucket).gradient_dtype),
       .bytes = plan.bucket_bytes(),
       .granularity = tile_elements});
}

Pieces gather_pieces(const Plan& plan, std::int64_t bucket) {
  return cut_gather(plan.shards(bucket),
                    {.element_bytes = size_of(plan.buffer_of(bucket).dtype),
                     .bytes = plan.bucket_bytes(),
                     .granularity = alignment_elements});
}

std::int64_t gather_piece_bytes(const Plan& plan) {
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < std::ssize(plan.buckets()); ++b) {
    const Buffer& buffer = plan.buffer_of(b);
    if (buffer.external)
      most = std::max(most, plan.ranks() * gather_pieces(plan, b).length *
                                size_of(buffer.dtype));
  }
  return most;
}

}  // namespace kzero::detail
