// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/join_channel.hpp"

#include <kzero/error.hpp>
#include <thread>
#include <utility>

#include "comm/wait_clock.hpp"
#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_core.hpp"

namespace kzero::detail {
namespace {

constexpr Subject subject{"join"};
// What a rank says that steps no member.
constexpr std::int64_t run_out = -1;
constexpr std::int64_t has_problem = -2;

}  // namespace

JoinChannel::JoinChannel(std::shared_ptr<Communicator> communicator,
                         JoinOptions options,
                         std::vector<OptimizerCore*> members)
    : communicator_(std::move(communicator)),
      options_(options),
      members_(std::move(members)),
      words_(communicator_->allocate(
          communicator_->size() *
          static_cast<std::int64_t>(sizeof(std::int64_t)))) {}

JoinRound JoinChannel::step(std::int64_t member) { return exchange(member); }

JoinRound JoinChannel::done(const std::string& problem) {
  if (problem.empty()) return exchange(run_out);
  exchange(has_problem);  // throws on the other ranks
  throw InvalidArgument(problem);
}

// A peer may wait for all gathers of a member before it comes here.
JoinRound JoinChannel::exchange(std::int64_t mine) {
  const int size = communicator_->size();
  const std::span words(static_cast<std::int64_t*>(words_.get()),
                        static_cast<std::size_t>(size));
  words[static_cast<std::size_t>(communicator_->rank())] = mine;
  const Ticket ticket = communicator_->start_all_gather(
      {words_.get(), DType::float64, ShardTable::uniform(size, 1), -1});
  WaitClock clock(communicator_->timeout());
  bool gathers = true;
  while (gathers && !ticket->test() && !clock.expired()) {
    gathers = false;
    for (OptimizerCore* member : members_)
      gathers = member->advance_gathers() || gathers;
    std::this_thread::yield();
  }
  ticket->wait();
  JoinRound round;
  for (int rank = size - 1; rank >= 0; --rank) {
    const std::int64_t theirs = words[static_cast<std::size_t>(rank)];
    if (theirs == has_problem) {
      if (mine == has_problem) return round;
      throw InvalidArgument(concat(
          "join: rank ", rank,
          " calls finish() between a mark and step(): step there first"));
    }
    if (theirs == run_out) {
      round.first_done = rank;
    } else {
      ++round.active;
      round.first_active = rank;
      round.optimizer = theirs;
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    const std::int64_t theirs = words[static_cast<std::size_t>(rank)];
    if (theirs != run_out && theirs != round.optimizer)
      throw InvalidArgument(concat(
          "join: rank ", round.first_active, " steps optimizer ",
          round.optimizer, " of the join, rank ", rank, " optimizer ", theirs,
          ": step them in the same order on every rank; nothing was changed"));
  }
  return round;
}

void JoinChannel::share_hyperparameters(const JoinRound& round,
                                        std::span<double> values) {
  communicator_->broadcast(values.data(),
                           static_cast<std::int64_t>(values.size_bytes()),
                           round.first_active, subject);
}

}  // namespace kzero::detail
