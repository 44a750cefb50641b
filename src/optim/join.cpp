// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/error.hpp>
#include <kzero/join.hpp>
#include <utility>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/join_channel.hpp"
#include "optim/optimizer_access.hpp"
#include "optim/optimizer_core.hpp"

namespace kzero {
namespace {

using detail::concat;
using detail::JoinChannel;
using detail::OptimizerCore;

constexpr Subject subject{"join"};

std::vector<OptimizerCore*> cores_of(
    const std::vector<ShardedOptimizer*>& optimizers) {
  if (optimizers.empty())
    throw InvalidArgument("join: no optimizer is given: give one or more");
  std::vector<OptimizerCore*> cores;
  for (ShardedOptimizer* optimizer : optimizers) {
    if (optimizer == nullptr)
      throw InvalidArgument(concat("join: optimizer ", cores.size(),
                                   " is null: give optimizers that exist"));
    cores.push_back(&detail::OptimizerAccess::core(*optimizer));
  }
  return cores;
}

void require_free(const std::vector<OptimizerCore*>& cores) {
  const Communicator& first = *cores.front()->communicator;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const OptimizerCore& core = *cores[i];
    if (core.joined() || std::count(cores.begin(), cores.end(), cores[i]) > 1)
      throw InvalidArgument(concat(
          "join: optimizer ", i,
          " has joined already: finish that join first, and give each once"));
    core.require_unmarked("join");
    const Communicator& own = *core.communicator;
    if (own.size() != first.size() || own.rank() != first.rank())
      throw InvalidArgument(
          concat("join: the communicator of optimizer ", i, " has rank ",
                 own.rank(), " of ", own.size(), " here, that of optimizer 0 ",
                 first.rank(), " of ", first.size(),
                 ": join optimizers over the same ranks in the same order"));
  }
}

void check(const JoinOptions& options) {
  if (options.divisor != JoinDivisor::active &&
      options.divisor != JoinDivisor::all)
    throw InvalidArgument(
        concat("JoinOptions::divisor is unknown (expected a "
               "code from 0 to 1, got ",
               static_cast<int>(options.divisor), "): use an enumerator"));
  if (options.uneven != Uneven::shadow && options.uneven != Uneven::refuse)
    throw InvalidArgument(
        concat("JoinOptions::uneven is unknown (expected a "
               "code from 0 to 1, got ",
               static_cast<int>(options.uneven), "): use an enumerator"));
}

}  // namespace

/// This rank's part of a join; ends with it.
class Join::State {
 public:
  explicit State(std::shared_ptr<JoinChannel> channel)
      : channel_(std::move(channel)) {
    std::int64_t seat = 0;
    for (OptimizerCore* core : channel_->members())
      core->join(channel_, seat++);
  }
  ~State() {
    for (OptimizerCore* core : channel_->members()) core->leave_join();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void finish() {
    while (true) {
      std::string problem;
      try {
        for (const OptimizerCore* core : channel_->members())
          core->require_unmarked("Join::finish");
      } catch (const InvalidArgument& error) {
        problem = error.what();
      }
      OptimizerCore& first = *channel_->members().front();
      const detail::JoinRound round =
          first.run([&] { return channel_->done(problem); });
      if (round.active == 0) return;
      OptimizerCore& stepping =
          *channel_->members()[static_cast<std::size_t>(round.optimizer)];
      stepping.run([&] { stepping.shadow_step(round); });
    }
  }

 private:
  std::shared_ptr<JoinChannel> channel_;
};

Join::Join(std::vector<ShardedOptimizer*> optimizers, JoinOptions options) {
  std::vector<OptimizerCore*> cores = cores_of(optimizers);
  Communicator& communicator = *cores.front()->communicator;
  for (OptimizerCore* core : cores)
    core->run([&] { core->wait_for_all_parameters(); });
  std::string problem;
  try {
    check(options);
    require_free(cores);
  } catch (const InvalidArgument& error) {
    problem = error.what();
  }
  detail::require_agreement(
      communicator, subject,
      [&](const auto& fact) {
        fact("optimizers", concat(cores.size()));
        fact("divisor",
             options.divisor == JoinDivisor::active ? "active" : "all");
        fact("uneven", options.uneven == Uneven::shadow ? "shadow" : "refuse");
      },
      problem);
  state_ = std::make_unique<State>(std::make_shared<JoinChannel>(
      communicator.duplicate(), options, std::move(cores)));
}

Join::Join(ShardedOptimizer& optimizer, JoinOptions options)
    : Join(std::vector<ShardedOptimizer*>{&optimizer}, options) {}

Join::~Join() = default;
Join::Join(Join&&) noexcept = default;
Join& Join::operator=(Join&&) noexcept = default;

void Join::finish() {
  if (!state_)
    throw InvalidArgument(
        "this join is over, or was moved from: make a new one");
  state_->finish();
  state_.reset();
}

}  // namespace kzero
