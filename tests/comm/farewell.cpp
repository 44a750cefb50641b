// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Programs that leave transfers of several MiB behind, each rank at another
// point, and simply finish. They must end. The argument says which.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/farewell.hpp"

namespace {

using kzero::Communicator;

constexpr std::int64_t shard = 500'000;  // elements, of 4 bytes

std::shared_ptr<Communicator> make(std::chrono::milliseconds timeout) {
  return kzero::make_communicator(MPI_COMM_WORLD,
                                  {kzero::Backend::mpi, timeout});
}

/// A reduction and a gather under way.
struct Transfers {
  explicit Transfers(Communicator& communicator)
      : bytes(4 * shard * communicator.size()),
        sent(communicator.allocate(bytes)),
        gathered(communicator.allocate(bytes)) {
    std::memset(sent.get(), 0, static_cast<std::size_t>(bytes));
    std::memset(gathered.get(), 0, static_cast<std::size_t>(bytes));
    kzero::ReduceArguments reduce;
    reduce.bucket = sent.get();
    reduce.shards = kzero::ShardTable::uniform(communicator.size(), shard);
    reduce.piece_bytes = std::int64_t{1} << 20;
    reduction = communicator.start_reduce(reduce);
    kzero::GatherArguments gather;
    gather.bucket = gathered.get();
    gather.shards = reduce.shards;
    all_gather = communicator.start_all_gather(gather);
  }

  std::int64_t bytes;
  std::shared_ptr<void> sent;
  std::shared_ptr<void> gathered;
  kzero::ReductionTicket reduction;
  kzero::Ticket all_gather;
};

/// Every rank has taken another number of pieces.
void drop_half_way(int rank) {
  const auto communicator = make(std::chrono::seconds(1));
  std::vector<Transfers> transfers;
  for (int i = 0; i < 3; ++i) transfers.emplace_back(*communicator);
  try {
    for (int piece = 0; piece < rank; ++piece) {
      transfers.front().reduction->next();
    }
    if (rank == 1) transfers.back().all_gather->test();
  } catch (const kzero::CommunicationError&) {
    // Another rank was faster.
  }
}

/// Every rank has started another number.
void drop_some(int rank) {
  const auto communicator = make(std::chrono::seconds(30));
  std::vector<Transfers> transfers;
  for (int i = 0; i < 2 * rank; ++i) transfers.emplace_back(*communicator);
}

/// On the others the communicator is in order, and gone.
void drop_on_one(int rank) {
  const auto communicator = make(std::chrono::seconds(30));
  if (rank == 0) const Transfers transfers(*communicator);
}

/// More messages than fit between two ranks.
void drop_many(int rank) {
  const auto communicator = make(std::chrono::seconds(30));
  const auto bucket = communicator->allocate(4 * communicator->size());
  kzero::GatherArguments arguments;
  arguments.bucket = bucket.get();
  arguments.shards = kzero::ShardTable::uniform(communicator->size(), 1);
  std::vector<kzero::Ticket> tickets;
  for (int i = 0; rank == 0 && i < 3000; ++i) {
    tickets.push_back(communicator->start_all_gather(arguments));
  }
}

/// One waits in vain for the others, which end meanwhile.
void time_out(int rank) {
  const auto communicator = make(std::chrono::seconds(1));
  if (rank != 0) return;
  Transfers transfers(*communicator);
  try {
    transfers.all_gather->wait();
  } catch (const kzero::CommunicationError&) {
    return;
  }
  throw kzero::Error("the others did not come, and nobody noticed");
}

/// Nothing is let go of before MPI ends.
void keep_all(int rank) {
  static const auto communicator = make(std::chrono::seconds(30));
  static std::vector<Transfers> transfers;
  for (int i = 0; i < 1 + rank; ++i) transfers.emplace_back(*communicator);
}

/// A duplicate breaks, of a group that is not all ranks.
void drop_in_a_group(int rank) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? 1 : 0, -rank, &part);
  const auto communicator =
      kzero::make_communicator(part, {kzero::Backend::mpi});
  MPI_Comm_free(&part);
  const auto duplicate = communicator->duplicate();
  if (rank == 0) const Transfers transfers(*duplicate);
}

/// A rank waits that the others do not know of; it gives up.
void wait_for_nobody(int rank) {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  if (rank == 0) {
    kzero::detail::meet_at_finalize(own, std::chrono::milliseconds(100));
  }
}

const std::map<std::string, void (*)(int)> programs = {
    {"drop_half_way", drop_half_way},
    {"drop_some", drop_some},
    {"drop_on_one", drop_on_one},
    {"drop_many", drop_many},
    {"drop_in_a_group", drop_in_a_group},
    {"time_out", time_out},
    {"keep_all", keep_all},
    {"wait_for_nobody", wait_for_nobody},
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int result = 0;
  try {
    programs.at(argc > 1 ? argv[1] : "")(rank);
  } catch (const std::exception& error) {
    std::printf("rank %d: %s\n", rank, error.what());
    result = 1;
  }
  MPI_Finalize();
  return result;
}
