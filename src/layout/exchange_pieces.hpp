// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The pieces in which a plan's buckets go through staging memory.
#pragma once

#include <cstdint>
#include <kzero/plan.hpp>

#include "core/pieces.hpp"

namespace kzero::detail {

/// Of a bucket's gradients; whole tiles, about PlanOptions::bucket_bytes.
Pieces reduction_pieces(const Plan& plan, std::int64_t bucket);

/// Of the values of a bucket in the caller's own memory: whole multiples of
/// alignment_elements of each rank, about PlanOptions::bucket_bytes of all
/// ranks.
Pieces gather_pieces(const Plan& plan, std::int64_t bucket);

/// What the largest of those takes, of all such buckets. 0 where there are
/// none.
std::int64_t gather_piece_bytes(const Plan& plan);

}  // namespace kzero::detail
