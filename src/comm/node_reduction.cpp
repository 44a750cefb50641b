// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_reduction.hpp"

#include <utility>

#include "comm/argument_checks.hpp"

namespace kzero::detail {

NodeReduction::NodeReduction(NodeTraffic& traffic, BetweenNodes* between,
                             std::vector<NodeReduction*>& started)
    : NodeOperation(traffic), between_(between), started_(started) {
  started_.reserve(started_.capacity() + 1);
}

void NodeReduction::start(const ReduceArguments& arguments, int rank,
                          std::shared_ptr<void> owner) {
  element_bytes_ = size_of(arguments.dtype);
  bucket_ = arguments.bucket;
  const ShardTable& shards = arguments.shards;
  contributions_ = {{}, arguments.dtype, {0, shards.size(rank)}};
  given_ = contributions_.range.empty();
  opened_ = false;
  taken_ = false;
  ended_ = false;
  buckets_.resize(static_cast<std::size_t>(traffic_.size()));
  parts_.resize(static_cast<std::size_t>(traffic_.size()));
  const Range all{0, shards.total()};
  post(NodeCall::reduce, subject_of(arguments), arguments.dtype, shards,
       arguments.bucket, all, all);
  if (between_ != nullptr)
    sent_ = &between_->reductions.prepare(
        arguments, between_->routes_of(arguments), owner);
  started_.push_back(this);
  owner_ = std::move(owner);
}

bool NodeReduction::have_all_come() {
  for (int peer = 0; peer < traffic_.size(); ++peer)
    if (peer != traffic_.self() && !has_come(peer)) return false;
  return true;
}

void NodeReduction::open_all() {
  for (int peer = 0; peer < traffic_.size(); ++peer)
    buckets_[static_cast<std::size_t>(peer)] =
        peer == traffic_.self() || shards_.total() == 0
            ? static_cast<const std::byte*>(bucket_)
            : open(peer);
  opened_ = true;
}

// Other nodes may wait for sums.
void NodeReduction::advance() {
  if (sent_ == nullptr || taken_) return;
  if (opened_) return between_->reductions.advance();
  if (!have_all_come()) return;
  open_all();
  sent_->set_buckets(buckets_);
}

const Contributions* NodeReduction::next_piece() {
  if (sent_ != nullptr) {
    traffic_.wait(subject_, [this](int peer) { return !has_come(peer); });
    if (!opened_) advance();
    return sent_->next();
  }
  if (std::exchange(given_, true)) {
    traffic_.wait(subject_, [this](int) { return !is_announced(); });
    return nullptr;
  }
  traffic_.wait(subject_, [this](int peer) { return !has_come(peer); });
  open_all();
  for (std::size_t i = 0; i < parts_.size(); ++i)
    parts_[i] = {buckets_[i] + record_.shard_begin * element_bytes_,
                 traffic_.rank_of(static_cast<int>(i)), 1};
  contributions_.parts = parts_;
  return &contributions_;
}

const Contributions* NodeReduction::next() {
  traffic_.health()->require(subject_);
  if (taken_) return nullptr;
  if (started_.front() != this)
    refuse_out_of_order(subject_, started_.front()->subject_);
  return traffic_.run(subject_, [&] {
    const Contributions* const piece = next_piece();
    if (piece == nullptr) {
      set_done();
      taken_ = true;
      started_.erase(started_.begin());
    }
    return piece;
  });
}

bool NodeReduction::test() {
  traffic_.health()->require(subject_);
  return traffic_.run(subject_, [&] {
    if (taken_) return true;
    traffic_.progress();
    if (started_.front() != this) return false;
    if (sent_ != nullptr) return opened_ && sent_->test();
    return given_ ? is_announced() : have_all_come();
  });
}

void NodeReduction::wait() {
  traffic_.health()->require(subject_);
  if (ended_) return;
  if (!taken_) refuse_before_the_end(subject_);
  traffic_.run(subject_, [&] {
    if (sent_ != nullptr) sent_->wait();
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
  if (sent_ != nullptr) std::exchange(sent_, nullptr)->release();
}

}  // namespace kzero::detail
