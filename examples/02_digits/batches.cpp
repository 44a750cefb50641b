// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "batches.hpp"

#include <algorithm>
#include <utility>

#include "random.hpp"

namespace digits {

Split split_images(std::int64_t count) {
  Split split;
  for (int i = 0; i < count; ++i) {
    (i % 5 == 4 ? split.held_out : split.training).push_back(i);
  }
  return split;
}

std::vector<int> epoch_order(std::vector<int> images, std::uint64_t seed,
                             std::int64_t epoch) {
  // Fisher and Yates. Streams of weights are even, of epochs odd.
  Random random(seed, 2 * static_cast<std::uint64_t>(epoch) + 1);
  for (std::size_t last = images.size(); last > 1; --last) {
    std::swap(images[last - 1],
              images[static_cast<std::size_t>(random.below(last))]);
  }
  return images;
}

std::int64_t batch_count(std::int64_t count, std::int64_t batch) {
  return count / batch + (count % batch != 0 ? 1 : 0);
}

kzero::Range batch_range(std::int64_t count, std::int64_t batch,
                         std::int64_t index) {
  const std::int64_t begin = index * batch;
  return {begin, begin + std::min(batch, count - begin)};
}

kzero::Range rank_part(kzero::Range range, int rank, int ranks) {
  const std::int64_t size = range.size();
  return {range.begin + size * rank / ranks,
          range.begin + size * (rank + 1) / ranks};
}

}  // namespace digits
