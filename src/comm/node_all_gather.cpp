// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_all_gather.hpp"

#include "comm/argument_checks.hpp"
#include "core/streams.hpp"

namespace kzero::detail {

void NodeAllGather::start(const GatherArguments& arguments, int rank,
                          std::shared_ptr<void> owner) {
  bucket_ = static_cast<std::byte*>(arguments.bucket);
  element_bytes_ = size_of(arguments.dtype);
  left_.assign(static_cast<std::size_t>(traffic_.size()), Left::all);
  left_[static_cast<std::size_t>(traffic_.self())] = Left::nothing;
  incomplete_ = traffic_.size() - 1;
  ended_ = false;
  leaving_ = false;
  is_done_here_ = false;
  has_arrived_ = between_ == nullptr;
  const Range own = arguments.shards.range(rank);
  post(NodeCall::all_gather, subject_of(arguments), arguments.dtype,
       arguments.shards, arguments.bucket,
       between_ == nullptr ? own : Range{0, arguments.shards.total()}, own);
  if (between_ != nullptr) begin_messages(arguments, rank);
  owner_ = std::move(owner);
}

// What comes from other nodes goes straight to where peers read it.
void NodeAllGather::begin_messages(const GatherArguments& arguments, int rank) {
  messages_.begin(
      between_->link.begin(Collective::all_gather, subject_, arguments.index));
  std::byte* const target = stand_in() == nullptr ? bucket_ : stand_in();
  for (const int sender : between_->arriving_at(traffic_.self())) {
    const Range range = shards_.range(sender);
    if (range.empty()) continue;
    messages_.receive(target + range.begin * element_bytes_,
                      range.size() * element_bytes_, sender);
  }
  const Range own = shards_.range(rank);
  if (own.empty()) return;
  for (const int receiver : between_->gather.receivers) {
    messages_.send(bucket_ + own.begin * element_bytes_,
                   own.size() * element_bytes_, receiver);
    between_->link.count_sent(subject_, own.size() * element_bytes_);
  }
}

void NodeAllGather::take_arrived() {
  if (!messages_.test(Until::received)) return;
  if (stand_in() != nullptr)
    for (const int rank : between_->arriving_at(traffic_.self()))
      copy(stand_in(), rank);
  set_arrived();
  has_arrived_ = true;
}

void NodeAllGather::copy(const std::byte* from, int rank) {
  const Range range = shards_.range(rank);
  if (range.empty() || from == bucket_) return;
  const std::int64_t first = range.begin * element_bytes_;
  const std::int64_t bytes = range.size() * element_bytes_;
  if (bytes >= large_stream)
    stream_copy(bucket_ + first, from + first, bytes);
  else
    copy_bytes(bucket_ + first, from + first, bytes);
}

void NodeAllGather::copy_from(int peer) {
  const auto place = static_cast<std::size_t>(peer);
  Left& left = left_[place];
  if (left == Left::all && has_come(peer)) {
    if (!leaving_ && shards_.size(traffic_.rank_of(peer)) > 0)
      copy(open(peer), traffic_.rank_of(peer));
    left = between_ == nullptr || between_->arriving_at(peer).empty()
               ? Left::nothing
               : Left::arriving;
    if (left == Left::nothing) --incomplete_;
  }
  if (left == Left::arriving && has_arrived_at(peer)) {
    if (!leaving_)
      for (const int rank : between_->arriving_at(peer)) copy(open(peer), rank);
    left = Left::nothing;
    --incomplete_;
  }
}

void NodeAllGather::advance() {
  if (is_done_here_) return;
  if (!has_arrived_) take_arrived();
  // Round the ring, so that not all ranks read the same memory.
  if (leaving_) incomplete_ = 0;
  for (int distance = 1; incomplete_ > 0 && distance < traffic_.size();
       ++distance)
    copy_from((traffic_.self() + distance) % traffic_.size());
  if (incomplete_ > 0 || !has_arrived_) return;
  if (between_ != nullptr && !messages_.test(Until::ended)) return;
  set_done();
  is_done_here_ = true;
}

bool NodeAllGather::test() {
  return traffic_.run(subject_, [&] {
    if (ended_) return true;
    traffic_.progress();
    if (is_done_here_ && (is_common() || is_done_by_all())) end();
    return ended_;
  });
}

void NodeAllGather::wait() {
  traffic_.run(subject_, [&] {
    if (ended_) return;
    // First those that have not come at all, to name no one else. What this
    // rank has done with is not looked at again.
    if (!is_done_here_)
      traffic_.wait(subject_, [this](int peer) { return !has_come(peer); });
    if (between_ != nullptr) {
      messages_.wait(Until::ended);
      traffic_.progress();
    }
    // A peer can be done before this rank has looked. What ranks have in common
    // nobody copies.
    traffic_.wait(subject_, [this](int peer) {
      if (is_done_here_) return !is_common() && !is_done_by(peer);
      return left_[static_cast<std::size_t>(peer)] != Left::nothing ||
             incomplete_ == 0;
    });
    end();
  });
}

void NodeAllGather::leave() {
  traffic_.run(subject_, [&] {
    leaving_ = true;
    traffic_.progress();
  });
}

void NodeAllGather::end() {
  retire();
  ended_ = true;
}

void NodeAllGather::release() noexcept {
  if (!ended_) {
    end();
    traffic_.break_off(subject_, dropped);
  }
  // Last, because this operation may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

}  // namespace kzero::detail
