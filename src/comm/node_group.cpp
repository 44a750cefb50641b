// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_group.hpp"

#include <kzero/error.hpp>
#include <set>
#include <utility>

#include "core/message.hpp"

namespace kzero::detail {
namespace {

constexpr Subject subject{"making a communicator"};

/// What a rank says that has a problem, in words of all; empty when none has.
std::string first_problem(Communicator& communicator,
                          const std::string& problem) {
  const auto size = static_cast<std::int64_t>(problem.size());
  std::vector<std::int64_t> sizes(
      static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&size, sizeof size, sizes.data(), subject);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const std::int64_t found = sizes[static_cast<std::size_t>(rank)];
    if (found == 0) continue;
    std::string text = problem;
    text.resize(static_cast<std::size_t>(found));
    communicator.broadcast(text.data(), found, rank, subject);
    return concat(text, " (rank ", rank, ")");
  }
  return {};
}

}  // namespace

NodePlaces find_places(Communicator& communicator) {
  struct Place {
    std::uint64_t node = 0;
    std::int64_t process = 0;
  };
  const Place mine{shared_memory_place(), process_id()};
  std::vector<Place> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&mine, sizeof mine, all.data(), subject);

  NodePlaces places;
  std::set<std::uint64_t> nodes;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Place& place = all[static_cast<std::size_t>(rank)];
    nodes.insert(place.node);
    if (place.node != mine.node) continue;
    if (rank == communicator.rank())
      places.self = static_cast<int>(places.ranks.size());
    places.ranks.push_back(rank);
    places.processes.push_back(place.process);
  }
  places.nodes = static_cast<int>(nodes.size());
  places.problem = first_problem(communicator, shared_memory_problem());
  return places;
}

std::optional<NodeSeats> take_seats(Communicator& communicator,
                                    const NodePlaces& places,
                                    std::string& problem) {
  const auto ranks = static_cast<int>(places.ranks.size());
  const bool is_first = places.self == 0;
  std::string found;
  SharedMemory memory;
  if (is_first) {
    try {
      memory = SharedMemory::create(NodeSeats::bytes_for(ranks));
    } catch (const Error& error) {
      found = error.what();
    }
  }
  // The first one's descriptor; and when everyone has opened it.
  const std::int64_t mine = memory.descriptor();
  std::vector<std::int64_t> descriptors(
      static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&mine, sizeof mine, descriptors.data(), subject);
  const std::int64_t descriptor =
      descriptors[static_cast<std::size_t>(places.ranks.front())];
  if (!is_first && descriptor >= 0) {
    try {
      memory = SharedMemory::open(
          places.processes.front(), static_cast<int>(descriptor),
          NodeSeats::bytes_for(ranks), SharedMemory::Access::write);
    } catch (const Error& error) {
      found = error.what();
    }
  }
  problem = first_problem(communicator, found);
  if (!problem.empty()) return std::nullopt;
  NodeSeats seats(std::move(memory), ranks, places.self);
  seats.close();
  return seats;
}

}  // namespace kzero::detail
