// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_communicator.hpp"

#include <kzero/error.hpp>
#include <utility>
#include <vector>

#include "comm/argument_checks.hpp"
#include "comm/node_boxes.hpp"
#include "comm/node_operations.hpp"
#include "comm/pool.hpp"
#include "core/message.hpp"

namespace kzero::detail {

struct NodeState {
  NodeState(std::shared_ptr<Communicator> communicator, NodeGroup group,
            std::shared_ptr<NodeMemory> memory, std::shared_ptr<Health> health)
      : messages(std::move(communicator)),
        places(std::move(group.places)),
        traffic(std::move(group.seats), places.ranks, std::move(memory),
                messages->timeout(), std::move(health)),
        boxes(traffic) {}

  /// Before a call by messages, in which nothing goes on here.
  void begin_messages(const Subject& subject) {
    traffic.count_call();
    traffic.finish_gathers(subject);
  }

  std::shared_ptr<Communicator> messages;  // for what need not be fast
  NodePlaces places;
  NodeTraffic traffic;
  NodeBoxes boxes;
  std::int64_t bytes_sent = 0;
  std::vector<NodeReduction*> started;  // and not taken, in order
  std::vector<std::unique_ptr<NodeReduction>> reductions;
  std::vector<std::unique_ptr<NodeAllGather>> all_gathers;
};

namespace {

// Larger data goes by messages, which need no boxes.
constexpr std::int64_t most_in_boxes = 16 * NodeBox::size;

}  // namespace

NodeCommunicator::NodeCommunicator(std::shared_ptr<Communicator> messages,
                                   NodeGroup group, std::string choice)
    : choice_(std::move(choice)) {
  auto memory = std::make_shared<NodeMemory>(group.places.processes);
  state_ = std::make_shared<NodeState>(std::move(messages), std::move(group),
                                       std::move(memory),
                                       std::make_shared<Health>());
}

NodeCommunicator::NodeCommunicator(const NodeCommunicator& original,
                                   NodeGroup group,
                                   std::shared_ptr<Communicator> messages)
    : choice_(original.choice_),
      state_(std::make_shared<NodeState>(
          std::move(messages), std::move(group),
          original.state_->traffic.shared_memory(),
          original.state_->traffic.health()->duplicate())) {}

NodeCommunicator::~NodeCommunicator() = default;

int NodeCommunicator::rank() const { return state_->messages->rank(); }

int NodeCommunicator::size() const { return state_->messages->size(); }

std::chrono::milliseconds NodeCommunicator::timeout() const {
  return state_->messages->timeout();
}

std::string NodeCommunicator::describe() const {
  return concat("node: ", counted(size(), "rank"),
                size() == 1 ? "" : " that read one another's memory", choice_);
}

std::shared_ptr<Communicator> NodeCommunicator::duplicate() {
  constexpr Subject subject{"duplication"};
  return state_->traffic.run(subject, [&] {
    state_->begin_messages(subject);
    auto messages = state_->messages->duplicate();
    std::string problem;
    auto seats = take_seats(*messages, state_->places, problem);
    if (!seats)
      throw CommunicationError(
          concat("no shared memory for a duplicate: ", problem));
    return std::shared_ptr<Communicator>(new NodeCommunicator(
        *this, NodeGroup{state_->places, *std::move(seats)},
        std::move(messages)));
  });
}

bool NodeCommunicator::concurrent() const {
  return state_->messages->concurrent();
}

std::shared_ptr<void> NodeCommunicator::allocate(std::int64_t bytes) {
  state_->traffic.health()->require({"allocation"});
  return state_->traffic.memory().allocate(bytes, state_->traffic.health());
}

std::int64_t NodeCommunicator::bytes_sent() const { return state_->bytes_sent; }

ReductionTicket NodeCommunicator::start_reduce(
    const ReduceArguments& arguments) {
  check_arguments(arguments, size());
  return state_->traffic.run(subject_of(arguments), [&] {
    NodeReduction& reduction =
        take_free(state_->reductions, state_->traffic, state_->started);
    reduction.start(arguments, rank(), state_);
    const ShardTable& shards = arguments.shards;
    if (arguments.index >= 0)
      state_->bytes_sent +=
          (shards.total() - shards.size(rank())) * size_of(arguments.dtype);
    return ReductionTicket(&reduction);
  });
}

Ticket NodeCommunicator::start_all_gather(const GatherArguments& arguments) {
  check_arguments(arguments, size());
  return state_->traffic.run(subject_of(arguments), [&] {
    NodeAllGather& gather = take_free(state_->all_gathers, state_->traffic);
    gather.start(arguments, rank(), state_);
    if (arguments.index >= 0)
      state_->bytes_sent += (size() - 1) * arguments.shards.size(rank()) *
                            size_of(arguments.dtype);
    return Ticket(&gather);
  });
}

void NodeCommunicator::all_gather(const void* send, std::int64_t bytes,
                                  void* receive, Subject subject) {
  check_bytes(send, bytes, subject);
  check_bytes(receive, bytes, subject, size());
  state_->traffic.run(subject, [&] {
    if (bytes <= most_in_boxes) {
      state_->boxes.all_gather(send, bytes, receive, subject);
    } else {
      state_->begin_messages(subject);
      state_->messages->all_gather(send, bytes, receive, subject);
    }
  });
}

void NodeCommunicator::broadcast(void* data, std::int64_t bytes, int root,
                                 Subject subject) {
  check_bytes(data, bytes, subject);
  check_root(root, size(), subject);
  state_->traffic.run(subject, [&] {
    state_->begin_messages(subject);
    state_->messages->broadcast(data, bytes, root, subject);
  });
}

void NodeCommunicator::gather(const void* send, void* receive,
                              const ShardTable& shards,
                              std::int64_t element_bytes, int root,
                              Subject subject) {
  check_arguments({receive, send, shards, element_bytes, root}, rank(), size(),
                  subject);
  state_->traffic.run(subject, [&] {
    state_->begin_messages(subject);
    state_->messages->gather(send, receive, shards, element_bytes, root,
                             subject);
  });
}

void NodeCommunicator::scatter(const void* send, void* receive,
                               const ShardTable& shards,
                               std::int64_t element_bytes, int root,
                               Subject subject) {
  check_arguments({send, receive, shards, element_bytes, root}, rank(), size(),
                  subject);
  state_->traffic.run(subject, [&] {
    state_->begin_messages(subject);
    state_->messages->scatter(send, receive, shards, element_bytes, root,
                              subject);
  });
}

void NodeCommunicator::barrier(Subject subject) {
  state_->traffic.run(subject, [&] { state_->boxes.barrier(subject); });
}

}  // namespace kzero::detail
