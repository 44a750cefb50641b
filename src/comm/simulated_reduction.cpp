// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/simulated_reduction.hpp"

#include <algorithm>
#include <utility>

#include "comm/argument_checks.hpp"

namespace kzero::detail {

SimulatedReduction::SimulatedReduction(SimulatedTraffic& traffic)
    : SimulatedTransfer(traffic) {}

void SimulatedReduction::start(const ReduceArguments& arguments,
                               std::shared_ptr<void> owner) {
  Communicator& inner = traffic_.inner();
  arguments_ = arguments;
  own_ = arguments.shards.size(inner.rank());
  longest_ = 0;
  for (int rank = 0; rank < inner.size(); ++rank) {
    longest_ = std::max(longest_, arguments.shards.size(rank));
  }

  ReductionTicket posted = inner.start_reduce(arguments);
  post(subject_of(arguments), bytes_up_to(longest_));
  inner_ = std::move(posted);
  is_ahead_ = false;
  given_any_ = false;
  ended_ = false;
  waited_ = false;
  owner_ = std::move(owner);

  // Its own shard this rank may write to as the pieces come.
  const std::int64_t element = size_of(arguments.dtype);
  const Range own = arguments.shards.range(inner.rank());
  const auto* bucket = static_cast<const std::byte*>(arguments.bucket);
  const auto bytes = [&](std::int64_t begin, std::int64_t end) {
    return SourceWatch::Bytes(
        bucket + begin * element,
        static_cast<std::size_t>((end - begin) * element));
  };
  source_.begin(bytes(0, own.begin), bytes(own.end, arguments.shards.total()));
}

std::int64_t SimulatedReduction::bytes_up_to(std::int64_t end) const {
  const Communicator& inner = traffic_.inner();
  std::int64_t sent = 0;
  for (int rank = 0; rank < inner.size(); ++rank) {
    if (rank != inner.rank()) {
      sent += std::min(end, arguments_.shards.size(rank));
    }
  }
  const std::int64_t received = (inner.size() - 1) * std::min(end, own_);
  return size_of(arguments_.dtype) * std::max(sent, received);
}

SteadyClock::time_point SimulatedReduction::arrival_of_piece(
    const Contributions* piece) const {
  return arrival_of(
      bytes_up_to(piece != nullptr ? piece->range.end : longest_));
}

SteadyClock::time_point SimulatedReduction::arrival_of_next() const {
  if (is_ahead_) return arrival_of_piece(ahead_);
  if (!given_any_ || given_.end == own_) return arrival_of_piece(nullptr);
  // Pieces are equally long but for the last one.
  return arrival_of(bytes_up_to(std::min(own_, given_.end + given_.size())));
}

void SimulatedReduction::poll() {
  if (!is_ahead_) static_cast<void>(inner_->test());
}

bool SimulatedReduction::has_come() {
  if (is_ahead_) return true;
  if (!inner_->test()) return false;
  if (!given_any_) {
    ahead_ = inner_->next();
    is_ahead_ = true;
  }
  return true;
}

bool SimulatedReduction::test() {
  return traffic_.run(subject_, [&] {
    if (ended_) return true;
    if (!traffic_.look_for_start(*this)) return false;
    has_come();
    if (SteadyClock::now() < arrival_of_next()) return false;
    return insist([&] { return has_come(); });
  });
}

const Contributions* SimulatedReduction::take() {
  if (std::exchange(is_ahead_, false)) return ahead_;
  return inner_->next();
}

const Contributions* SimulatedReduction::next() {
  return traffic_.run(subject_, [&]() -> const Contributions* {
    if (ended_) return nullptr;
    const Contributions* piece = take();
    traffic_.wait_for_start(*this);
    traffic_.sleep_until(arrival_of_piece(piece));
    if (piece == nullptr) {
      finish();
      return nullptr;
    }
    given_any_ = true;
    given_ = piece->range;
    return piece;
  });
}

void SimulatedReduction::wait() {
  if (!ended_) refuse_before_the_end(subject_);
  if (waited_) return;
  traffic_.run(subject_, [&] { inner_->wait(); });
  waited_ = true;
  source_.end(subject_, traffic_.inner().rank());
}

void SimulatedReduction::finish() {
  ended_ = true;
  retire();
}

void SimulatedReduction::release() noexcept {
  if (!waited_) traffic_.health()->break_off(subject_, dropped);
  inner_.reset();
  retire();
  // Last, because this reduction may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

}  // namespace kzero::detail
