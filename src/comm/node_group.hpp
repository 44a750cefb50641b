// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which ranks share a node, and the memory through which they meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/node_seats.hpp"

namespace kzero::detail {

/// Which ranks are together on a node.
struct NodePlaces {
  /// The ranks of each node, ascending; the node of rank 0 comes first.
  std::vector<std::vector<int>> nodes;
  int node = 0;                         // of this rank
  int self = 0;                         // its place there
  std::vector<std::int64_t> processes;  // of the ranks of its node
  std::string problem;                  // why they share no memory, or empty

  const std::vector<int>& ranks() const {
    return nodes[static_cast<std::size_t>(node)];
  }
};

/// mark: ranks of one machine with different ones are on different nodes.
/// Collective.
NodePlaces find_places(Communicator& communicator, std::int64_t mark);

/// Why ranks of a node cannot open one another's memory, in the same words on
/// every rank; empty when all can. Collective.
std::string try_sharing(Communicator& communicator, const NodePlaces& places);

/// Memory that the ranks of a node have in common; problem is empty then, and
/// else says in the same words on every rank what one has found. Collective.
SharedMemory open_common(Communicator& communicator, const NodePlaces& places,
                         std::int64_t bytes, std::string& problem);

/// The node's seats; nothing, on every rank of the communicator, where one has
/// found a problem, which is then said in the same words by all. Collective.
std::optional<NodeSeats> take_seats(Communicator& communicator,
                                    const NodePlaces& places,
                                    std::string& problem);

struct NodeGroup {
  NodePlaces places;
  NodeSeats seats;
};

}  // namespace kzero::detail
