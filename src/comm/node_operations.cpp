// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_operations.hpp"

#include <utility>

#include "comm/argument_checks.hpp"

namespace kzero::detail {
void NodeReduction::start(const ReduceArguments& arguments, int rank,
                          std::shared_ptr<void> owner) {
  element_bytes_ = size_of(arguments.dtype);
  const ShardTable& shards = arguments.shards;
  contributions_ = {{}, arguments.dtype, {0, shards.size(rank)}};
  given_ = contributions_.range.empty();
  taken_ = false;
  ended_ = false;
  parts_.resize(static_cast<std::size_t>(traffic_.size()));
  parts_[static_cast<std::size_t>(traffic_.self())] = {
      static_cast<const std::byte*>(arguments.bucket) +
          shards.range(rank).begin * element_bytes_,
      rank, 1};
  post(NodeCall::reduce, subject_of(arguments), arguments.dtype, shards,
       arguments.bucket, {0, shards.total()});
  started_.push_back(this);
  owner_ = std::move(owner);
}

bool NodeReduction::have_all_come() {
  for (int peer = 0; peer < traffic_.size(); ++peer)
    if (peer != traffic_.self() && !has_come(peer)) return false;
  return true;
}

void NodeReduction::set_parts() {
  for (int peer = 0; peer < traffic_.size(); ++peer) {
    if (peer == traffic_.self()) continue;
    parts_[static_cast<std::size_t>(peer)] = {
        open(peer) + record_.shard_begin * element_bytes_,
        traffic_.rank_of(peer), 1};
  }
  contributions_.parts = parts_;
}

const Contributions* NodeReduction::next() {
  traffic_.health()->require(subject_);
  if (taken_) return nullptr;
  if (started_.front() != this)
    refuse_out_of_order(subject_, started_.front()->subject_);
  return traffic_.run(subject_, [&]() -> const Contributions* {
    if (!std::exchange(given_, true)) {
      traffic_.wait(subject_, [this](int peer) { return !has_come(peer); });
      set_parts();
      return &contributions_;
    }
    set_done();
    taken_ = true;
    started_.erase(started_.begin());
    return nullptr;
  });
}

bool NodeReduction::test() {
  traffic_.health()->require(subject_);
  return traffic_.run(subject_, [&] {
    if (taken_) return true;
    traffic_.progress();
    if (started_.front() != this) return false;
    return given_ || have_all_come();
  });
}

void NodeReduction::wait() {
  traffic_.health()->require(subject_);
  if (ended_) return;
  if (!taken_) refuse_before_the_end(subject_);
  traffic_.run(subject_, [&] {
    traffic_.wait(subject_, [this](int peer) { return !is_done_by(peer); });
  });
  retire();
  ended_ = true;
}

void NodeReduction::release() noexcept {
  if (!ended_) {
    if (!taken_) std::erase(started_, this);
    retire();
    ended_ = taken_ = true;
    traffic_.break_off(subject_, dropped);
  }
  // Last, because this reduction may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

void NodeAllGather::start(const GatherArguments& arguments, int rank,
                          std::shared_ptr<void> owner) {
  bucket_ = static_cast<std::byte*>(arguments.bucket);
  element_bytes_ = size_of(arguments.dtype);
  copied_.assign(static_cast<std::size_t>(traffic_.size()), 0);
  left_ = traffic_.size() - 1;
  ended_ = false;
  leaving_ = false;
  is_done_here_ = false;
  post(NodeCall::all_gather, subject_of(arguments), arguments.dtype,
       arguments.shards, arguments.bucket, arguments.shards.range(rank));
  owner_ = std::move(owner);
}

void NodeAllGather::advance() {
  if (is_done_here_) return;
  if (leaving_) left_ = 0;
  // Round the ring, so that not all ranks read the same memory.
  for (int distance = 1; left_ > 0 && distance < traffic_.size(); ++distance) {
    const int peer = (traffic_.self() + distance) % traffic_.size();
    std::uint8_t& copied = copied_[static_cast<std::size_t>(peer)];
    if (copied != 0 || !has_come(peer)) continue;
    const Range range = shards_.range(traffic_.rank_of(peer));
    if (!range.empty()) {
      const std::int64_t first = range.begin * element_bytes_;
      copy_bytes(bucket_ + first, open(peer) + first,
                 range.size() * element_bytes_);
    }
    copied = 1;
    --left_;
  }
  if (left_ > 0) return;
  set_done();
  is_done_here_ = true;
}

bool NodeAllGather::lacks(int peer) const {
  return !is_done_here_ && copied_[static_cast<std::size_t>(peer)] == 0;
}

bool NodeAllGather::test() {
  return traffic_.run(subject_, [&] {
    if (ended_) return true;
    traffic_.progress();
    if (is_done()) end();
    return ended_;
  });
}

void NodeAllGather::wait() {
  traffic_.run(subject_, [&] {
    if (ended_) return;
    // First those that have not come at all, to name no one else.
    traffic_.wait(subject_, [this](int peer) { return !has_come(peer); });
    // A peer can be done before this rank has looked.
    traffic_.wait(subject_, [this](int peer) {
      return !is_done_here_ || !is_done_by(peer);
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
