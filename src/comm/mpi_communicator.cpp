// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/mpi_communicator.hpp"

#include <kzero/error.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/argument_checks.hpp"
#include "comm/duplicate.hpp"
#include "comm/farewell.hpp"
#include "comm/figures.hpp"
#include "comm/mpi_all_gather.hpp"
#include "comm/mpi_reduction.hpp"
#include "comm/pool.hpp"
#include "comm/small_collectives.hpp"
#include "core/message.hpp"

namespace kzero::detail {

struct MpiState {
  MpiState(MPI_Comm duplicate, std::chrono::milliseconds timeout,
           std::shared_ptr<Health> health)
      : link(duplicate, timeout, std::move(health)),
        routes(make_pairwise_routes(link.rank(), link.size())),
        all_ranks(static_cast<std::size_t>(link.size())),
        small(link),
        reductions(link) {
    std::iota(all_ranks.begin(), all_ranks.end(), 0);
  }

  MpiLink link;  // first: the others post on it
  BlockRoutes routes;
  std::vector<int> all_ranks;
  SmallCollectives small;
  MpiReductions reductions;
  std::vector<std::unique_ptr<MpiAllGather>> all_gathers;
};

namespace {

const char* name_of(std::int64_t backend) {
  constexpr const char* names[] = {"automatic", "self", "mpi", "node"};
  return names[backend];
}

bool threads_may_call_mpi() {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  return provided == MPI_THREAD_MULTIPLE;
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm duplicate,
                                 const CommunicatorOptions& options,
                                 Backend backend, std::string choice,
                                 const std::string& problem)
    : choice_(std::move(choice)),
      concurrent_(threads_may_call_mpi()),
      state_(std::make_shared<MpiState>(duplicate, options.timeout,
                                        std::make_shared<Health>())) {
  agree(options.message_bytes, backend, problem);
}

MpiCommunicator::MpiCommunicator(MPI_Comm duplicate,
                                 const MpiCommunicator& original)
    : choice_(original.choice_),
      concurrent_(original.concurrent_),
      state_(std::make_shared<MpiState>(
          duplicate, original.timeout(),
          original.state_->link.health()->duplicate())) {
  state_->link.set_message_bytes(original.state_->link.message_bytes());
}

MpiCommunicator::~MpiCommunicator() = default;

void MpiCommunicator::agree(std::int64_t bytes, Backend backend,
                            const std::string& problem) {
  MpiLink& link = state_->link;
  const bool is_known = has_farewell(link.communicator());
  const std::vector<Figures> all = exchange_figures(
      *this, {bytes, is_known, static_cast<std::int64_t>(backend)}, problem);
  bool is_known_everywhere = true;
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    if (all[peer][1] == 0) is_known_everywhere = false;
    if (all[peer][2] != all[0][2])
      throw InvalidArgument(concat(
          "backends differ between the ranks of a communicator (rank 0: ",
          name_of(all[0][2]), ", rank ", peer, ": ", name_of(all[peer][2]),
          "): give every rank the same option and the same KZERO_BACKEND"));
    if (all[peer][0] == all[0][0]) continue;
    throw InvalidArgument(concat(
        "message_bytes differ between the ranks of a communicator (rank 0: ",
        all[0][0], ", rank ", peer, ": ", all[peer][0],
        "): give every rank the same"));
  }
  link.set_message_bytes(bytes);
  // The same decision on every rank.
  if (!is_known_everywhere && size() > 1) {
    meet_at_finalize(link.communicator(), link.timeout());
    link.keep_communicator();
  }
}

MpiLink& MpiCommunicator::link() { return state_->link; }

int MpiCommunicator::rank() const { return state_->link.rank(); }

int MpiCommunicator::size() const { return state_->link.size(); }

std::chrono::milliseconds MpiCommunicator::timeout() const {
  return state_->link.timeout();
}

std::string MpiCommunicator::describe() const {
  return concat("mpi: ", counted(size(), "rank"), ", pairwise messages",
                choice_);
}

std::shared_ptr<Communicator> MpiCommunicator::duplicate() {
  MpiLink& link = state_->link;
  constexpr Subject subject{"duplication"};
  link.health()->require(subject);
  return link.run(subject, [&] {
    const MPI_Comm same_ranks = detail::duplicate(
        link.communicator(), link.timeout(), subject, "duplicate");
    return std::make_shared<MpiCommunicator>(same_ranks, *this);
  });
}

std::shared_ptr<void> MpiCommunicator::allocate(std::int64_t bytes) {
  state_->link.health()->require({"allocation"});
  return allocate_shared(bytes, state_->link.health());
}

std::int64_t MpiCommunicator::staging_bytes() const {
  return state_->reductions.staging_bytes();
}

std::int64_t MpiCommunicator::bytes_sent() const {
  return state_->link.bytes_sent();
}

ReductionTicket MpiCommunicator::start_reduce(
    const ReduceArguments& arguments) {
  check_arguments(arguments, size());
  return state_->link.run(subject_of(arguments), [&] {
    return state_->reductions.start(arguments, state_->routes, state_);
  });
}

Ticket MpiCommunicator::start_all_gather(const GatherArguments& arguments) {
  check_arguments(arguments, size());
  return state_->link.run(subject_of(arguments), [&] {
    MpiAllGather& gather = take_free(state_->all_gathers, state_->link);
    gather.start(arguments, state_);
    return Ticket(&gather);
  });
}

void MpiCommunicator::all_gather(const void* send, std::int64_t bytes,
                                 void* receive, Subject subject) {
  check_bytes(send, bytes, subject);
  check_bytes(receive, bytes, subject, size());
  state_->link.run(subject, [&] {
    state_->small.all_gather(send, bytes, receive, subject);
  });
}

void MpiCommunicator::broadcast(void* data, std::int64_t bytes, int root,
                                Subject subject) {
  check_bytes(data, bytes, subject);
  check_root(root, size(), subject);
  state_->link.run(subject, [&] {
    state_->small.broadcast(data, bytes, root, subject, state_->all_ranks);
  });
}

void MpiCommunicator::broadcast(void* data, std::int64_t bytes, int root,
                                Subject subject, std::span<const int> ranks) {
  state_->link.run(subject, [&] {
    state_->small.broadcast(data, bytes, root, subject, ranks);
  });
}

void MpiCommunicator::gather(const void* send, void* receive,
                             const ShardTable& shards,
                             std::int64_t element_bytes, int root,
                             Subject subject) {
  check_arguments({receive, send, shards, element_bytes, root}, rank(), size(),
                  subject);
  state_->link.run(subject, [&] {
    state_->small.gather(send, receive, shards, element_bytes, root, subject);
  });
}

void MpiCommunicator::scatter(const void* send, void* receive,
                              const ShardTable& shards,
                              std::int64_t element_bytes, int root,
                              Subject subject) {
  check_arguments({send, receive, shards, element_bytes, root}, rank(), size(),
                  subject);
  state_->link.run(subject, [&] {
    state_->small.scatter(send, receive, shards, element_bytes, root, subject);
  });
}

void MpiCommunicator::barrier(Subject subject) {
  state_->link.run(subject, [&] { state_->small.barrier(subject); });
}

}  // namespace kzero::detail
