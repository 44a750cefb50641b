// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/simulated_communicator.hpp"

#include <exception>
#include <utility>
#include <vector>

#include "comm/argument_checks.hpp"
#include "comm/pool.hpp"
#include "comm/simulated_all_gather.hpp"
#include "comm/simulated_reduction.hpp"
#include "comm/simulated_traffic.hpp"
#include "core/message.hpp"

namespace kzero::detail {

struct SimulatedState {
  SimulatedState(std::shared_ptr<Communicator> inner,
                 std::shared_ptr<SimulatedWire> wire)
      : traffic(std::move(inner), std::move(wire)) {}

  SimulatedTraffic traffic;  // first: the others are part of it
  std::vector<std::unique_ptr<SimulatedReduction>> reductions;
  std::vector<std::unique_ptr<SimulatedAllGather>> all_gathers;
  // Without the times of posting, which the wrapped one sends too.
  std::int64_t bytes_sent = 0;
};

SimulatedCommunicator::SimulatedCommunicator(
    std::shared_ptr<Communicator> inner, std::shared_ptr<SimulatedWire> wire)
    : state_(std::make_shared<SimulatedState>(std::move(inner),
                                              std::move(wire))) {}

SimulatedCommunicator::~SimulatedCommunicator() = default;

Communicator& SimulatedCommunicator::inner() const {
  return state_->traffic.inner();
}

int SimulatedCommunicator::rank() const { return inner().rank(); }

int SimulatedCommunicator::size() const { return inner().size(); }

std::chrono::milliseconds SimulatedCommunicator::timeout() const {
  return inner().timeout();
}

std::string SimulatedCommunicator::describe() const {
  const SimulatedLink& link = state_->traffic.wire()->link();
  return concat(inner().describe(), ", on a simulated link (latency ",
                link.latency.count(), " ns, ", link.bytes_per_second,
                " bytes a second)");
}

std::shared_ptr<Communicator> SimulatedCommunicator::duplicate() {
  SimulatedTraffic& traffic = state_->traffic;
  return traffic.run({"duplication"}, [&] {
    return std::make_shared<SimulatedCommunicator>(inner().duplicate(),
                                                   traffic.wire());
  });
}

bool SimulatedCommunicator::concurrent() const { return inner().concurrent(); }

std::shared_ptr<void> SimulatedCommunicator::allocate(std::int64_t bytes) {
  return state_->traffic.run({"allocation"},
                             [&] { return inner().allocate(bytes); });
}

std::int64_t SimulatedCommunicator::staging_bytes() const {
  std::int64_t bytes = inner().staging_bytes();
  for (const auto& reduction : state_->reductions) {
    bytes += reduction->staging_bytes();
  }
  for (const auto& gather : state_->all_gathers) {
    bytes += gather->staging_bytes();
  }
  return bytes;
}

std::int64_t SimulatedCommunicator::bytes_sent() const {
  return state_->bytes_sent;
}

ReductionTicket SimulatedCommunicator::start_reduce(
    const ReduceArguments& arguments) {
  check_arguments(arguments, size());
  SimulatedTraffic& traffic = state_->traffic;
  return traffic.run<std::exception>(subject_of(arguments), [&] {
    SimulatedReduction& reduction = take_free(state_->reductions, traffic);
    reduction.start(arguments, state_);
    const ShardTable& shards = arguments.shards;
    if (arguments.index >= 0)
      state_->bytes_sent +=
          (shards.total() - shards.size(rank())) * size_of(arguments.dtype);
    return ReductionTicket(&reduction);
  });
}

Ticket SimulatedCommunicator::start_all_gather(
    const GatherArguments& arguments) {
  check_arguments(arguments, size());
  SimulatedTraffic& traffic = state_->traffic;
  return traffic.run<std::exception>(subject_of(arguments), [&] {
    SimulatedAllGather& gather = take_free(state_->all_gathers, traffic);
    gather.start(arguments, state_);
    if (arguments.index >= 0)
      state_->bytes_sent += (size() - 1) * arguments.shards.size(rank()) *
                            size_of(arguments.dtype);
    return Ticket(&gather);
  });
}

void SimulatedCommunicator::all_gather(const void* send, std::int64_t bytes,
                                       void* receive, Subject subject) {
  state_->traffic.run(subject, [&] {
    inner().all_gather(send, bytes, receive, subject);
    state_->traffic.take_time((size() - 1) * bytes);
  });
}

void SimulatedCommunicator::broadcast(void* data, std::int64_t bytes, int root,
                                      Subject subject) {
  state_->traffic.run(subject, [&] {
    inner().broadcast(data, bytes, root, subject);
    state_->traffic.take_time(size() > 1 ? bytes : 0);
  });
}

std::int64_t SimulatedCommunicator::bytes_with_root(const ShardTable& shards,
                                                    std::int64_t element_bytes,
                                                    int root) const {
  const std::int64_t own = shards.size(rank());
  return element_bytes * (rank() == root ? shards.total() - own : own);
}

void SimulatedCommunicator::gather(const void* send, void* receive,
                                   const ShardTable& shards,
                                   std::int64_t element_bytes, int root,
                                   Subject subject) {
  state_->traffic.run(subject, [&] {
    inner().gather(send, receive, shards, element_bytes, root, subject);
    state_->traffic.take_time(bytes_with_root(shards, element_bytes, root));
  });
}

void SimulatedCommunicator::scatter(const void* send, void* receive,
                                    const ShardTable& shards,
                                    std::int64_t element_bytes, int root,
                                    Subject subject) {
  state_->traffic.run(subject, [&] {
    inner().scatter(send, receive, shards, element_bytes, root, subject);
    state_->traffic.take_time(bytes_with_root(shards, element_bytes, root));
  });
}

void SimulatedCommunicator::barrier(Subject subject) {
  state_->traffic.run(subject, [&] {
    inner().barrier(subject);
    state_->traffic.take_time(0);
  });
}

}  // namespace kzero::detail
