// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the ranks of a node have to do with those of others.
#pragma once

#include <kzero/communicator.hpp>
#include <vector>

#include "comm/block_routes.hpp"
#include "comm/mpi_link.hpp"
#include "comm/mpi_reduction.hpp"

namespace kzero::detail {

/// How updated shards get to a node: each once, to the rank whose place in its
/// node is that of the owner (modulo the size of the node).
struct GatherRoutes {
  /// By the ranks of this node, in their order: the ranks of other nodes whose
  /// shards come to it, the next one on the ring first.
  std::vector<std::vector<int>> arriving;
  /// To which this rank sends its own.
  std::vector<int> receivers;
};

GatherRoutes make_gather_routes(const std::vector<std::vector<int>>& nodes,
                                int node, int self);

/// Of one rank.
struct BetweenNodes {
  BetweenNodes(MpiLink& its_link, const std::vector<std::vector<int>>& nodes,
               int node, int self);

  const BlockRoutes& routes_of(const ReduceArguments& arguments) const {
    if (arguments.sum == nullptr) return single;
    return size_of(arguments.dtype) == 2 ? summed_16 : summed;
  }

  const std::vector<int>& arriving_at(int place) const {
    return gather.arriving[static_cast<std::size_t>(place)];
  }

  MpiLink& link;
  BlockRoutes summed;
  /// Of 16-bit gradients: the sum of two has as many bytes as the two.
  BlockRoutes summed_16;
  BlockRoutes single;  // where nothing may be added up
  GatherRoutes gather;
  MpiReductions reductions;
};

/// Ranks in the largest block that a node adds up.
int largest_block(const std::vector<std::vector<int>>& nodes);

}  // namespace kzero::detail
