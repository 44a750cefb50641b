// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Who sends what in a reduction: ranks whose buckets can be read where they lie
// send nothing to one another, and add up for the rest what belongs together in
// the ordered sum.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kzero::detail {

/// What a reduction adds up: the sum of an aligned block of ranks.
struct RankBlock {
  static constexpr int here = -1;

  int first_rank = 0;
  int rank_count = 1;
  /// That it goes to or comes from in a message.
  int peer = here;
};

/// Of one rank.
struct BlockRoutes {
  /// Ranks whose buckets this one can read, itself among them, ascending.
  std::vector<int> here;
  /// Of its shard: all ranks, in their order.
  std::vector<RankBlock> parts;
  /// Of those that come in messages the places among parts, in the order in
  /// which they are posted.
  std::vector<std::size_t> incoming;
  /// What it sends for the shards of others, in the order of posting.
  std::vector<RankBlock> outgoing;

  /// Whether what comes may wait for ranks that do not send it.
  bool is_relayed = false;
  /// For whose shards others here read this rank's bucket.
  std::vector<int> lent;

  /// The place of a rank among those here.
  std::size_t place(int rank) const;
};

/// Of a node's ranks, maximal blocks of 2^k that follow one another and begin
/// at a multiple of 2^k; ranks of blocks of fewer than fewest are by
/// themselves.
std::vector<RankBlock> aligned_blocks(std::span<const int> ranks, int fewest);

/// nodes: the ranks of each, ascending; every rank stands once. For the rank in
/// place p of another node, a block is added up and sent by the one in place p
/// (modulo its size) of the block.
BlockRoutes make_routes(std::span<const std::vector<int>> nodes, int rank,
                        int fewest);

/// Every rank by itself.
BlockRoutes make_pairwise_routes(int rank, int ranks);

}  // namespace kzero::detail
