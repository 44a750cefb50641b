// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/block_routes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/node_routes.hpp"

namespace kzero::detail {
namespace {

using Nodes = std::vector<std::vector<int>>;

Nodes consecutive(const std::vector<int>& sizes) {
  Nodes nodes;
  int rank = 0;
  for (const int size : sizes) {
    nodes.emplace_back();
    for (int i = 0; i < size; ++i) nodes.back().push_back(rank++);
  }
  return nodes;
}

Nodes in_turn(int ranks, int count) {
  Nodes nodes(static_cast<std::size_t>(count));
  for (int rank = 0; rank < ranks; ++rank)
    nodes[static_cast<std::size_t>(rank % count)].push_back(rank);
  return nodes;
}

std::vector<Nodes> all_nodes() {
  std::vector<Nodes> all = {consecutive({1}),
                            consecutive({4}),
                            consecutive({2, 2}),
                            consecutive({3, 3}),
                            consecutive({4, 4}),
                            consecutive({1, 1, 1}),
                            consecutive({7, 1}),
                            consecutive({1, 7}),
                            consecutive({3, 5, 2, 6}),
                            consecutive({1, 2, 3, 4}),
                            in_turn(4, 2),
                            in_turn(7, 3),
                            {{0, 5, 6, 7}, {1, 2, 3, 4}}};
  for (int nodes = 2; nodes < 6; ++nodes)
    all.push_back(consecutive(std::vector(static_cast<std::size_t>(nodes), 8)));
  return all;
}

int ranks_of(const Nodes& nodes) {
  int ranks = 0;
  for (const auto& node : nodes) ranks += static_cast<int>(node.size());
  return ranks;
}

std::string words_of(const std::vector<RankBlock>& blocks) {
  std::string text;
  for (const RankBlock& block : blocks)
    text += std::to_string(block.first_rank) + '+' +
            std::to_string(block.rank_count) + ' ';
  return text;
}

TEST(BlockRoutes, CutsRanksIntoSubtreesOfTheOrderedSum) {
  const auto blocks = [](std::vector<int> ranks, int fewest = 2) {
    return words_of(aligned_blocks(ranks, fewest));
  };
  EXPECT_EQ(blocks({0, 1, 2, 3}), "0+4 ");
  EXPECT_EQ(blocks({0, 1, 2}), "0+2 2+1 ");
  EXPECT_EQ(blocks({3, 4, 5}), "3+1 4+2 ");
  EXPECT_EQ(blocks({1, 2, 3, 4, 5, 6}), "1+1 2+2 4+2 6+1 ");
  EXPECT_EQ(blocks({8, 9, 10, 11, 12, 13, 14, 15}), "8+8 ");
  EXPECT_EQ(blocks({0, 2, 4, 6}), "0+1 2+1 4+1 6+1 ");
  EXPECT_EQ(blocks({0, 1, 2, 3, 4, 5}, 4), "0+4 4+1 5+1 ");
  EXPECT_EQ(blocks({0, 1, 2, 3}, 8), "0+1 1+1 2+1 3+1 ");
}

// Each shard gets all ranks, in order, from ranks that have them and send them
// in the order in which they are expected.
TEST(BlockRoutes, BringAllRanksToEachShard) {
  for (const Nodes& nodes : all_nodes())
    for (const int fewest : {2, 4, 1 << 20}) {
      const int ranks = ranks_of(nodes);
      std::map<std::pair<int, int>, std::vector<RankBlock>> sent;
      std::map<std::pair<int, int>, std::vector<RankBlock>> expected;
      for (int rank = 0; rank < ranks; ++rank) {
        const BlockRoutes routes = make_routes(nodes, rank, fewest);
        int next = 0;
        std::size_t here = 0;
        for (const RankBlock& part : routes.parts) {
          EXPECT_EQ(part.first_rank, next);
          EXPECT_EQ(part.first_rank % part.rank_count, 0);
          EXPECT_TRUE(part.rank_count == 1 || part.rank_count >= fewest);
          next += part.rank_count;
          if (part.peer != RankBlock::here) continue;
          EXPECT_EQ(part.rank_count, 1);
          EXPECT_EQ(routes.here[here], part.first_rank);
          EXPECT_EQ(routes.place(part.first_rank), here++);
        }
        EXPECT_EQ(next, ranks);
        EXPECT_EQ(here, routes.here.size());
        EXPECT_EQ(routes.incoming.size() + here, routes.parts.size());
        for (const std::size_t i : routes.incoming) {
          const RankBlock& part = routes.parts[i];
          expected[{part.peer, rank}].push_back(part);
        }
        for (const RankBlock& block : routes.outgoing) {
          sent[{rank, block.peer}].push_back(block);
          if (block.rank_count == 1) {
            EXPECT_EQ(block.first_rank, rank);
          } else {
            for (int i = 0; i < block.rank_count; ++i)
              EXPECT_EQ(routes.here[routes.place(block.first_rank + i)],
                        block.first_rank + i);
          }
        }
      }
      ASSERT_EQ(sent.size(), expected.size());
      for (const auto& [pair, blocks] : sent)
        EXPECT_EQ(words_of(blocks), words_of(expected[pair]));
    }
}

TEST(BlockRoutes, ShareTheSumsOfANode) {
  for (const Nodes& nodes :
       {consecutive({4, 4}), consecutive({8, 8, 8}), consecutive({2, 2, 2})}) {
    const std::size_t others = nodes.size() - 1;
    for (int rank = 0; rank < ranks_of(nodes); ++rank) {
      const BlockRoutes routes = make_routes(nodes, rank, 2);
      EXPECT_EQ(routes.outgoing.size(), others);
      EXPECT_EQ(routes.incoming.size(), others);
      // Those of the node, and those that its other ranks add up for.
      EXPECT_EQ(routes.lent.size(), (nodes[0].size() - 1) * nodes.size());
    }
  }
}

TEST(BlockRoutes, OfPairs) {
  const BlockRoutes routes = make_pairwise_routes(1, 4);
  EXPECT_EQ(words_of(routes.parts), "0+1 1+1 2+1 3+1 ");
  EXPECT_EQ(routes.incoming, (std::vector<std::size_t>{0, 3, 2}));
  std::vector<int> peers;
  for (const RankBlock& block : routes.outgoing) peers.push_back(block.peer);
  EXPECT_EQ(peers, (std::vector<int>{2, 3, 0}));
  EXPECT_TRUE(routes.lent.empty());
}

// Each shard comes to every other node once, from its owner to a rank that
// expects it.
TEST(GatherRoutes, BringEachShardToEachNodeOnce) {
  for (const Nodes& nodes : all_nodes()) {
    std::map<std::pair<int, int>, int> sent;
    std::map<std::pair<int, int>, int> expected;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      std::map<int, int> times;
      for (std::size_t self = 0; self < nodes[node].size(); ++self) {
        const GatherRoutes routes = make_gather_routes(
            nodes, static_cast<int>(node), static_cast<int>(self));
        const int rank = nodes[node][self];
        for (const int from : routes.arriving[self]) {
          ++expected[{from, rank}];
          ++times[from];
        }
        for (const int to : routes.receivers) ++sent[{rank, to}];
      }
      EXPECT_EQ(times.size() + nodes[node].size(),
                static_cast<std::size_t>(ranks_of(nodes)));
      for (const auto& [from, count] : times) EXPECT_EQ(count, 1) << from;
    }
    EXPECT_EQ(sent, expected);
  }
}

TEST(LargestBlock, IsThatOfAnyNode) {
  EXPECT_EQ(largest_block(consecutive({4, 4})), 4);
  EXPECT_EQ(largest_block(consecutive({3, 5})), 4);
  EXPECT_EQ(largest_block(in_turn(8, 2)), 1);
  EXPECT_EQ(largest_block(consecutive({1, 1})), 1);
}

}  // namespace
}  // namespace kzero::detail
