// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which ranks share a node, and the memory through which they meet.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/node_seats.hpp"

namespace kzero::detail {

/// The ranks that share this one's node.
struct NodePlaces {
  std::vector<int> ranks;               // ascending
  std::vector<std::int64_t> processes;  // of those ranks
  int self = 0;                         // this rank among them
  int nodes = 1;                        // of the whole communicator
  std::string problem;                  // why they share no memory, or empty
};

/// Collective.
NodePlaces find_places(Communicator& communicator);

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
