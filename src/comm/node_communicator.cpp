// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_communicator.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "comm/argument_checks.hpp"
#include "comm/node_all_gather.hpp"
#include "comm/node_boxes.hpp"
#include "comm/node_reduction.hpp"
#include "comm/node_routes.hpp"
#include "comm/pool.hpp"
#include "core/message.hpp"

namespace kzero::detail {

struct NodeState {
  NodeState(std::shared_ptr<MpiCommunicator> communicator, NodeGroup group,
            std::shared_ptr<NodeMemory> memory)
      : messages(std::move(communicator)),
        places(std::move(group.places)),
        traffic(std::move(group.seats), places.ranks(), std::move(memory),
                messages->link()),
        boxes(traffic) {
    if (places.nodes.size() > 1)
      between.emplace(messages->link(), places.nodes, places.node, places.self);
  }

  BetweenNodes* others() { return between ? &*between : nullptr; }

  /// Elements that ranks of this node read of this rank's bucket.
  std::int64_t lent_elements(const ReduceArguments& arguments) const {
    const ShardTable& shards = arguments.shards;
    if (!between) return shards.total() - shards.size(messages->rank());
    std::int64_t elements = 0;
    for (const int rank : between->routes_of(arguments).lent)
      elements += shards.size(rank);
    return elements;
  }
  std::int64_t lent_elements(const GatherArguments& arguments) const {
    const ShardTable& shards = arguments.shards;
    std::int64_t elements = shards.size(messages->rank());
    if (between)
      for (const int rank : between->arriving_at(places.self))
        elements += shards.size(rank);
    return elements * (traffic.size() - 1);
  }

  std::shared_ptr<MpiCommunicator> messages;
  NodePlaces places;
  NodeTraffic traffic;
  NodeBoxes boxes;
  std::optional<BetweenNodes> between;  // where there are several nodes
  std::int64_t bytes_lent = 0;          // to ranks of this node
  std::vector<NodeReduction*> started;  // and not taken, in order
  std::vector<std::unique_ptr<NodeReduction>> reductions;
  std::vector<std::unique_ptr<NodeAllGather>> all_gathers;
};

namespace {

// Larger data goes by messages, which need no boxes.
constexpr std::int64_t most_in_boxes = 16 * NodeBox::size;

std::string words_of(const NodePlaces& places) {
  const std::size_t nodes = places.nodes.size();
  if (nodes == 1)
    return places.ranks().size() == 1 ? "" : " that read one another's memory";
  const int block = largest_block(places.nodes);
  return concat(
      " on ", nodes, " nodes, which read one another's memory in a node; ",
      block > 1 ? concat("sums of up to ", block, " ranks go between nodes")
                : std::string("nothing can be added up before it goes between "
                              "nodes: place ranks of a node one after another "
                              "for less traffic"));
}

/// The rank that a broadcast into common memory goes to, of each node.
std::vector<int> one_a_node(const NodePlaces& places, int root) {
  std::vector<int> ranks;
  for (const auto& node : places.nodes)
    ranks.push_back(std::binary_search(node.begin(), node.end(), root)
                        ? root
                        : node.front());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

NodeCommunicator::NodeCommunicator(std::shared_ptr<MpiCommunicator> messages,
                                   NodeGroup group, std::string choice)
    : choice_(std::move(choice)) {
  auto memory = std::make_shared<NodeMemory>(group.places.processes);
  state_ = std::make_shared<NodeState>(std::move(messages), std::move(group),
                                       std::move(memory));
}

NodeCommunicator::NodeCommunicator(const NodeCommunicator& original,
                                   NodeGroup group,
                                   std::shared_ptr<MpiCommunicator> messages)
    : choice_(original.choice_),
      state_(std::make_shared<NodeState>(
          std::move(messages), std::move(group),
          original.state_->traffic.shared_memory())) {}

NodeCommunicator::~NodeCommunicator() = default;

int NodeCommunicator::rank() const { return state_->messages->rank(); }

int NodeCommunicator::size() const { return state_->messages->size(); }

std::chrono::milliseconds NodeCommunicator::timeout() const {
  return state_->messages->timeout();
}

std::string NodeCommunicator::describe() const {
  return concat("node: ", counted(size(), "rank"), words_of(state_->places),
                choice_);
}

std::shared_ptr<Communicator> NodeCommunicator::duplicate() {
  constexpr Subject subject{"duplication"};
  return state_->traffic.run(subject, [&] {
    state_->traffic.count_call();
    auto messages = std::static_pointer_cast<MpiCommunicator>(
        state_->messages->duplicate());
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

std::shared_ptr<void> NodeCommunicator::allocate_common(std::int64_t bytes) {
  constexpr Subject subject{"allocation"};
  std::string problem;
  SharedMemory memory = state_->traffic.run(subject, [&] {
    state_->traffic.count_call();
    return open_common(*state_->messages, state_->places, bytes, problem);
  });
  if (!problem.empty()) throw Error(problem);
  return state_->traffic.memory().take_common(std::move(memory),
                                              state_->traffic.health());
}

Communicator::Sharing NodeCommunicator::sharing() const {
  return {state_->traffic.size(), state_->traffic.self()};
}

std::int64_t NodeCommunicator::staging_bytes() const {
  const auto lock = state_->traffic.lock();
  return state_->between ? state_->between->reductions.staging_bytes() : 0;
}

std::int64_t NodeCommunicator::bytes_sent() const {
  const auto lock = state_->traffic.lock();
  return state_->bytes_lent + state_->messages->bytes_sent();
}

ReductionTicket NodeCommunicator::start_reduce(
    const ReduceArguments& arguments) {
  check_arguments(arguments, size());
  return state_->traffic.run(subject_of(arguments), [&] {
    NodeReduction& reduction = take_free(state_->reductions, state_->traffic,
                                         state_->others(), state_->started);
    reduction.start(arguments, rank(), state_);
    if (arguments.index >= 0)
      state_->bytes_lent +=
          state_->lent_elements(arguments) * size_of(arguments.dtype);
    return ReductionTicket(&reduction);
  });
}

Ticket NodeCommunicator::start_all_gather(const GatherArguments& arguments) {
  check_arguments(arguments, size());
  return state_->traffic.run(subject_of(arguments), [&] {
    NodeAllGather& gather =
        take_free(state_->all_gathers, state_->traffic, state_->others(),
                  state_->messages->link());
    gather.start(arguments, rank(), state_);
    if (arguments.index >= 0)
      state_->bytes_lent +=
          state_->lent_elements(arguments) * size_of(arguments.dtype);
    return Ticket(&gather);
  });
}

void NodeCommunicator::all_gather(const void* send, std::int64_t bytes,
                                  void* receive, Subject subject) {
  check_bytes(send, bytes, subject);
  check_bytes(receive, bytes, subject, size());
  state_->traffic.run(subject, [&] {
    if (!state_->between && bytes <= most_in_boxes) {
      state_->boxes.all_gather(send, bytes, receive, subject);
    } else {
      state_->traffic.count_call();
      state_->messages->all_gather(send, bytes, receive, subject);
    }
  });
}

void NodeCommunicator::broadcast(void* data, std::int64_t bytes, int root,
                                 Subject subject) {
  check_bytes(data, bytes, subject);
  check_root(root, size(), subject);
  state_->traffic.run(subject, [&] {
    state_->traffic.count_call();
    if (!state_->traffic.memory().is_common(data, bytes))
      return state_->messages->broadcast(data, bytes, root, subject);
    // Nobody of the node reads it before all are here, nor goes on before it
    // has come.
    state_->boxes.barrier(subject);
    state_->messages->broadcast(data, bytes, root, subject,
                                one_a_node(state_->places, root));
    state_->boxes.barrier(subject);
  });
}

void NodeCommunicator::gather(const void* send, void* receive,
                              const ShardTable& shards,
                              std::int64_t element_bytes, int root,
                              Subject subject) {
  check_arguments({receive, send, shards, element_bytes, root}, rank(), size(),
                  subject);
  state_->traffic.run(subject, [&] {
    state_->traffic.count_call();
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
    state_->traffic.count_call();
    state_->messages->scatter(send, receive, shards, element_bytes, root,
                              subject);
  });
}

void NodeCommunicator::barrier(Subject subject) {
  state_->traffic.run(subject, [&] {
    if (!state_->between) return state_->boxes.barrier(subject);
    state_->traffic.count_call();
    state_->messages->barrier(subject);
  });
}

}  // namespace kzero::detail
