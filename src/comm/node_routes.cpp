// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_routes.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace kzero::detail {

namespace {

constexpr int never = std::numeric_limits<int>::max();

}  // namespace

GatherRoutes make_gather_routes(const std::vector<std::vector<int>>& nodes,
                                int node, int self) {
  const auto own = static_cast<std::size_t>(node);
  const std::size_t size = nodes[own].size();
  GatherRoutes routes;
  routes.arriving.resize(size);
  // Round the nodes, so that not all begin with the same one.
  for (std::size_t distance = 1; distance < nodes.size(); ++distance) {
    const auto& from = nodes[(own + distance) % nodes.size()];
    for (std::size_t place = 0; place < from.size(); ++place)
      routes.arriving[place % size].push_back(from[place]);
    const auto& to = nodes[(own + nodes.size() - distance) % nodes.size()];
    routes.receivers.push_back(to[static_cast<std::size_t>(self) % to.size()]);
  }
  return routes;
}

BetweenNodes::BetweenNodes(MpiLink& its_link,
                           const std::vector<std::vector<int>>& nodes, int node,
                           int self)
    : link(its_link),
      summed(make_routes(nodes, its_link.rank(), 2)),
      summed_16(make_routes(nodes, its_link.rank(), 4)),
      single(make_routes(nodes, its_link.rank(), never)),
      gather(make_gather_routes(nodes, node, self)),
      reductions(its_link) {}

int largest_block(const std::vector<std::vector<int>>& nodes) {
  int largest = 1;
  for (const auto& ranks : nodes)
    for (const RankBlock& block : aligned_blocks(ranks, 2))
      largest = std::max(largest, block.rank_count);
  return largest;
}

}  // namespace kzero::detail
