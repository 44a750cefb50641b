// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/block_routes.hpp"

#include <algorithm>
#include <tuple>

namespace kzero::detail {
namespace {

/// The place of a rank's node, and of the rank in it.
struct Place {
  std::size_t node = 0;
  std::size_t in_node = 0;
};

Place find(std::span<const std::vector<int>> nodes, int rank) {
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto& ranks = nodes[node];
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
    if (at != ranks.end() && *at == rank)
      return {node, static_cast<std::size_t>(at - ranks.begin())};
  }
  return {};
}

}  // namespace

std::size_t BlockRoutes::place(int rank) const {
  return static_cast<std::size_t>(
      std::lower_bound(here.begin(), here.end(), rank) - here.begin());
}

std::vector<RankBlock> aligned_blocks(std::span<const int> ranks, int fewest) {
  std::vector<RankBlock> blocks;
  for (std::size_t i = 0; i < ranks.size();) {
    const int first = ranks[i];
    std::size_t count = 1;
    const auto fits = [&](std::size_t size) {
      return i + size <= ranks.size() &&
             static_cast<std::size_t>(first) % size == 0 &&
             static_cast<std::size_t>(ranks[i + size - 1] - first) == size - 1;
    };
    while (fits(2 * count)) count *= 2;
    if (count >= static_cast<std::size_t>(fewest))
      blocks.push_back({first, static_cast<int>(count)});
    else
      for (std::size_t k = 0; k < count; ++k) blocks.push_back({ranks[i + k]});
    i += count;
  }
  return blocks;
}

BlockRoutes make_routes(std::span<const std::vector<int>> nodes, int rank,
                        int fewest) {
  const auto [own_node, own_place] = find(nodes, rank);
  int ranks = 0;
  for (const auto& node : nodes) ranks += static_cast<int>(node.size());
  // Round the ring, so that not all ranks begin with the same peer.
  const auto distance = [&](int from, int to) {
    return (to - from + ranks) % ranks;
  };

  BlockRoutes routes;
  routes.here = nodes[own_node];
  for (const int each : routes.here) {
    routes.parts.push_back({each});
    if (each != rank) routes.lent.push_back(each);
  }
  const auto sender = [](const RankBlock& block, std::size_t place) {
    return block.first_rank +
           static_cast<int>(place % static_cast<std::size_t>(block.rank_count));
  };
  const auto own_blocks = aligned_blocks(routes.here, fewest);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (node == own_node) continue;
    routes.is_relayed |= nodes[node].size() > 1;
    for (RankBlock block : aligned_blocks(nodes[node], fewest)) {
      block.peer = sender(block, own_place);
      routes.parts.push_back(block);
    }
    for (std::size_t place = 0; place < nodes[node].size(); ++place) {
      for (RankBlock block : own_blocks) {
        const bool has_own = block.first_rank <= rank &&
                             rank < block.first_rank + block.rank_count;
        block.peer = nodes[node][place];
        if (sender(block, place) == rank)
          routes.outgoing.push_back(block);
        else if (has_own)
          routes.lent.push_back(block.peer);
      }
    }
  }
  std::sort(routes.parts.begin(), routes.parts.end(),
            [](const RankBlock& a, const RankBlock& b) {
              return a.first_rank < b.first_rank;
            });

  for (std::size_t i = 0; i < routes.parts.size(); ++i)
    if (routes.parts[i].peer != RankBlock::here) routes.incoming.push_back(i);
  std::sort(routes.incoming.begin(), routes.incoming.end(),
            [&](std::size_t a, std::size_t b) {
              return std::tuple(distance(routes.parts[a].peer, rank), a) <
                     std::tuple(distance(routes.parts[b].peer, rank), b);
            });
  std::sort(routes.outgoing.begin(), routes.outgoing.end(),
            [&](const RankBlock& a, const RankBlock& b) {
              return std::tuple(distance(rank, a.peer), a.first_rank) <
                     std::tuple(distance(rank, b.peer), b.first_rank);
            });
  return routes;
}

BlockRoutes make_pairwise_routes(int rank, int ranks) {
  std::vector<std::vector<int>> nodes;
  for (int each = 0; each < ranks; ++each) nodes.push_back({each});
  return make_routes(nodes, rank, 2);
}

}  // namespace kzero::detail
