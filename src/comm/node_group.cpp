// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_group.hpp"

#include <kzero/error.hpp>
#include <map>
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

NodePlaces find_places(Communicator& communicator, std::int64_t mark) {
  struct Place {
    std::uint64_t machine = 0;
    std::int64_t mark = 0;
    std::int64_t process = 0;
  };
  const Place mine{shared_memory_place(), mark, process_id()};
  std::vector<Place> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&mine, sizeof mine, all.data(), subject);

  NodePlaces places;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t> numbers;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Place& place = all[static_cast<std::size_t>(rank)];
    const auto [at, is_new] = numbers.try_emplace(
        std::pair(place.machine, place.mark), places.nodes.size());
    if (is_new) places.nodes.emplace_back();
    std::vector<int>& ranks = places.nodes[at->second];
    if (rank == communicator.rank()) {
      places.node = static_cast<int>(at->second);
      places.self = static_cast<int>(ranks.size());
    }
    ranks.push_back(rank);
  }
  for (const int rank : places.ranks())
    places.processes.push_back(all[static_cast<std::size_t>(rank)].process);
  places.problem = first_problem(communicator, shared_memory_problem());
  return places;
}

namespace {

struct Offer {
  SharedMemory::Handle handle;
  std::int64_t wanted = 0;  // bytes
};

/// Those of the node's ranks, in their order. Collective over all.
std::vector<Offer> exchange_offers(Communicator& communicator,
                                   const NodePlaces& places,
                                   const SharedMemory& memory,
                                   std::int64_t wanted) {
  const Offer mine{memory.handle(), wanted};
  std::vector<Offer> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&mine, sizeof mine, all.data(), subject);
  std::vector<Offer> offers;
  for (const int rank : places.ranks())
    offers.push_back(all[static_cast<std::size_t>(rank)]);
  return offers;
}

/// What f throws as an Error, in words; empty when it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

std::string try_sharing(Communicator& communicator, const NodePlaces& places) {
  SharedMemory memory;
  std::string found = error_of([&] { memory = SharedMemory::create(1); });
  const auto offers = exchange_offers(communicator, places, memory, 1);
  for (std::size_t peer = 0; peer < offers.size() && found.empty(); ++peer) {
    // One that has none says so itself.
    if (offers[peer].handle.descriptor < 0) continue;
    found = error_of([&] {
      (void)SharedMemory::open(places.processes[peer], offers[peer].handle,
                               SharedMemory::Access::read);
    });
  }
  // Until here it stays open.
  return first_problem(communicator, found);
}

SharedMemory open_common(Communicator& communicator, const NodePlaces& places,
                         std::int64_t bytes, std::string& problem) {
  const bool is_first = places.self == 0;
  SharedMemory memory;
  std::string found;
  if (is_first && bytes >= 0)
    found = error_of([&] { memory = SharedMemory::create(bytes); });
  const auto offers = exchange_offers(communicator, places, memory, bytes);
  const Offer& first = offers.front();
  for (const Offer& each : offers)
    if (each.wanted != bytes || bytes < 0)
      found = concat("ranks of a node ask for memory of ", each.wanted, " and ",
                     bytes, " bytes in common: give all one size of 0 or more");
  if (!is_first && first.handle.descriptor >= 0 && found.empty())
    found = error_of([&] {
      memory = SharedMemory::open(places.processes.front(), first.handle,
                                  SharedMemory::Access::write);
    });
  problem = first_problem(communicator, found);
  memory.close();
  return memory;
}

std::optional<NodeSeats> take_seats(Communicator& communicator,
                                    const NodePlaces& places,
                                    std::string& problem) {
  const auto ranks = static_cast<int>(places.ranks().size());
  SharedMemory memory =
      open_common(communicator, places, NodeSeats::bytes_for(ranks), problem);
  if (!problem.empty()) return std::nullopt;
  return NodeSeats(std::move(memory), ranks, places.self);
}

}  // namespace kzero::detail
