// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which image is used when, and by which rank.
#pragma once

#include <cstdint>
#include <kzero/range.hpp>
#include <vector>

namespace digits {

/// Numbers of the images to train on and of those held out: every fifth.
struct Split {
  std::vector<int> training;
  std::vector<int> held_out;
};
Split split_images(std::int64_t count);

/// The images in the order of one epoch. It depends on seed and epoch only,
/// never on the ranks: that makes a run continue alike on another number.
std::vector<int> epoch_order(std::vector<int> images, std::uint64_t seed,
                             std::int64_t epoch);

/// The index-th global batch of an epoch of count images. The last one may be
/// smaller.
kzero::Range batch_range(std::int64_t count, std::int64_t batch,
                         std::int64_t index);
std::int64_t batch_count(std::int64_t count, std::int64_t batch);

/// A rank's part. Parts differ by one at most, and some are empty when there
/// are fewer images than ranks.
kzero::Range rank_part(kzero::Range range, int rank, int ranks);

}  // namespace digits
