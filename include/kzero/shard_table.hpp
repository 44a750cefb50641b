// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How a bucket is cut over the ranks. Every collective on buckets takes one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <kzero/range.hpp>
#include <span>

namespace kzero {

/// The shards of one bucket: rank r holds elements range(r). Shards follow one
/// another in rank order, may differ in size and may be empty. Equal shards
/// take no memory a rank; for others the offsets stay with their owner (the
/// Plan), of which this is a view.
class ShardTable {
 public:
  ShardTable() = default;

  /// ranks shards of size elements each.
  static ShardTable uniform(int ranks, std::int64_t size) {
    ShardTable table;
    table.ranks_ = ranks;
    table.size_ = size;
    return table;
  }

  /// Shard r is [offsets[r], offsets[r + 1]): ranks + 1 ascending entries, the
  /// first one 0. The table refers to them and does not copy.
  explicit ShardTable(std::span<const std::int64_t> offsets)
      : ranks_(static_cast<int>(offsets.size()) - 1), offsets_(offsets) {}

  int ranks() const { return ranks_; }

  /// Of a rank below ranks(): not checked here. Collectives check the table.
  Range range(int rank) const {
    if (offsets_.empty()) return {rank * size_, (rank + 1) * size_};
    const auto r = static_cast<std::size_t>(rank);
    return {offsets_[r], offsets_[r + 1]};
  }

  std::int64_t size(int rank) const { return range(rank).size(); }

  /// Elements of the largest shard.
  std::int64_t largest() const {
    if (offsets_.empty()) return size_;
    std::int64_t most = 0;
    for (int rank = 0; rank < ranks_; ++rank) most = std::max(most, size(rank));
    return most;
  }

  /// Elements of all shards together.
  std::int64_t total() const { return ranks_ == 0 ? 0 : range(ranks_ - 1).end; }

 private:
  int ranks_ = 0;
  std::int64_t size_ = 0;
  std::span<const std::int64_t> offsets_;
};

}  // namespace kzero
