// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/self_communicator.hpp"

#include <utility>

#include "comm/aligned_memory.hpp"
#include "comm/argument_checks.hpp"
#include "comm/pool.hpp"
#include "comm/self_operations.hpp"
#include "core/message.hpp"

namespace kzero::detail {

SelfCommunicator::SelfCommunicator(std::chrono::milliseconds timeout,
                                   std::string choice,
                                   std::shared_ptr<Health> health)
    : timeout_(timeout),
      choice_(std::move(choice)),
      state_(std::make_shared<SelfState>()) {
  state_->health = std::move(health);
}

SelfCommunicator::~SelfCommunicator() = default;

std::string SelfCommunicator::describe() const {
  return concat("self: 1 rank", choice_);
}

std::shared_ptr<Communicator> SelfCommunicator::duplicate() {
  state_->health->require({"duplication"});
  return std::make_shared<SelfCommunicator>(timeout_, choice_,
                                            state_->health->duplicate());
}

std::shared_ptr<void> SelfCommunicator::allocate(std::int64_t bytes) {
  state_->health->require({"allocation"});
  return allocate_shared(bytes, state_->health);
}

ReductionTicket SelfCommunicator::start_reduce(
    const ReduceArguments& arguments) {
  check_arguments(arguments, 1);
  state_->health->require(subject_of(arguments));
  SelfReduction& reduction = take_free(state_->reductions, *state_);
  reduction.start(arguments, state_);
  return ReductionTicket(&reduction);
}

Ticket SelfCommunicator::start_all_gather(const GatherArguments& arguments) {
  check_arguments(arguments, 1);
  state_->health->require(subject_of(arguments));
  SelfAllGather& gather = take_free(state_->all_gathers, *state_);
  gather.start(arguments, state_);
  return Ticket(&gather);
}

void SelfCommunicator::all_gather(const void* send, std::int64_t bytes,
                                  void* receive, Subject subject) {
  check_bytes(send, bytes, subject);
  check_bytes(receive, bytes, subject);
  state_->health->require(subject);
  copy_bytes(receive, send, bytes);
}

void SelfCommunicator::broadcast(void* data, std::int64_t bytes, int root,
                                 Subject subject) {
  check_bytes(data, bytes, subject);
  check_root(root, 1, subject);
  state_->health->require(subject);
}

void SelfCommunicator::gather(const void* send, void* receive,
                              const ShardTable& shards,
                              std::int64_t element_bytes, int root,
                              Subject subject) {
  check_arguments({receive, send, shards, element_bytes, root}, 0, 1, subject);
  state_->health->require(subject);
  copy_bytes(receive, send, shards.total() * element_bytes);
}

void SelfCommunicator::scatter(const void* send, void* receive,
                               const ShardTable& shards,
                               std::int64_t element_bytes, int root,
                               Subject subject) {
  check_arguments({send, receive, shards, element_bytes, root}, 0, 1, subject);
  state_->health->require(subject);
  copy_bytes(receive, send, shards.total() * element_bytes);
}

void SelfCommunicator::barrier(Subject subject) {
  state_->health->require(subject);
}

}  // namespace kzero::detail
