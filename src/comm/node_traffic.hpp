// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The operations of this rank in shared memory, in the order of their start,
// and the one routine that waits for the other ranks of the node.
#pragma once

#include <cstdint>
#include <exception>
#include <kzero/communicator.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/all_progress.hpp"
#include "comm/health.hpp"
#include "comm/mpi_link.hpp"
#include "comm/node_memory.hpp"
#include "comm/node_seats.hpp"
#include "comm/wait_clock.hpp"

namespace kzero::detail {

class NodeTraffic;

/// A reduction or a gather of a bucket.
class NodeOperation {
 public:
  NodeOperation(const NodeOperation&) = delete;
  NodeOperation& operator=(const NodeOperation&) = delete;

 protected:
  explicit NodeOperation(NodeTraffic& traffic);
  ~NodeOperation() = default;

  /// Announces it. readable: the elements of the bucket that peers read of this
  /// rank; memory that they cannot read is stood for by some that they can,
  /// into which the elements of filled are copied.
  void post(NodeCall call, const Subject& subject, DType dtype,
            const ShardTable& shards, const void* bucket, Range readable,
            Range filled);
  /// What stands for the bucket's memory, as of its first element; null where
  /// peers read the bucket itself.
  std::byte* stand_in() const { return stand_in_; }
  /// Whether the ranks of the node have the bucket in common.
  bool is_common() const { return record_.is_common != 0; }

  /// Whether peers can see it: not before all have done what was before it in
  /// its place.
  bool is_announced() const;
  /// Whether a peer has announced the same; checked once. Throws
  /// CommunicationError when it has announced something else.
  bool has_come(int peer);
  /// Where the peer's bucket is here. It has come. Throws CommunicationError.
  const std::byte* open(int peer);
  /// Whether a peer has done what it had to.
  bool is_done_by(int peer) const;
  bool is_done_by_all() const;  // but this rank
  /// This rank needs nothing more of its peers' buckets. It is announced.
  void set_done();
  /// What comes to this rank's bucket from other nodes is there. It is
  /// announced.
  void set_arrived();
  bool has_arrived_at(int peer) const;
  /// It has ended.
  void retire() noexcept;

  NodeTraffic& traffic_;
  ShardTable shards_;
  Subject subject_;
  NodeRecord record_;

 private:
  friend class NodeTraffic;

  /// Goes on without a wait. It is announced.
  virtual void advance() = 0;
  std::shared_ptr<void> allocate_copy(std::int64_t bytes);

  std::uint64_t number_ = 0;
  std::shared_ptr<NodeRegion> region_;
  std::shared_ptr<void> copy_;  // for memory that peers cannot read
  std::byte* stand_in_ = nullptr;
  std::int64_t copied_bytes_ = 0;
  std::vector<std::uint8_t> come_;  // by peer
};

class NodeTraffic final : public Progressing {
 public:
  /// ranks: of the communicator, by their place in the node. link: by which
  /// messages go meanwhile.
  NodeTraffic(NodeSeats seats, std::vector<int> ranks,
              std::shared_ptr<NodeMemory> memory, MpiLink& link);
  ~NodeTraffic();
  NodeTraffic(const NodeTraffic&) = delete;
  NodeTraffic& operator=(const NodeTraffic&) = delete;

  int size() const { return seats_.ranks(); }
  int self() const { return seats_.self(); }
  int rank_of(int peer) const { return ranks_[static_cast<std::size_t>(peer)]; }
  const NodeSeats& seats() const { return seats_; }
  NodeMemory& memory() const { return *memory_; }
  const std::shared_ptr<NodeMemory>& shared_memory() const { return memory_; }
  const std::shared_ptr<Health>& health() const { return link_.health(); }

  /// Everything goes on as far as it can without a wait.
  void progress();
  void try_to_go_on() noexcept override;

  /// Waits while lacks(peer) for any other rank of the node, and lets
  /// everything go on, also what other communicators of this process have
  /// under way: peers may wait for that first. Throws CommunicationError after
  /// the timeout, which says who is missing.
  template <class Lacks>
  void wait(const Subject& subject, const Lacks& lacks);

  /// The number of the next call of a collective, by whatever way it goes.
  std::int64_t count_call() { return calls_++; }

  /// Makes the communicator unusable, here and for who waits for this rank.
  void break_off(const Subject& subject, std::string_view why) noexcept;
  [[noreturn]] void fail(const std::string& message);

  /// Throws unless a peer's record is what is expected of it.
  void require_same(const NodeRecord& found, const NodeRecord& expected,
                    const Subject& subject, int peer);

  /// For a look at what every call changes, and who helps too.
  std::unique_lock<std::recursive_mutex> lock() {
    return std::unique_lock(busy_);
  }

  template <class F>
  decltype(auto) run(const Subject& subject, F&& part) {
    const std::lock_guard lock(busy_);
    health()->require(subject);
    try {
      return part();
    } catch (const std::exception& error) {
      break_off(subject, error.what());
      throw;
    }
  }

 private:
  friend class NodeOperation;

  // A peer that runs on a core of its own comes within the first looks; then
  // this rank's core goes to others, which may be the peer.
  static constexpr std::int64_t eager_looks = 200;
  static constexpr std::int64_t yielding_looks = 300;

  void add(NodeOperation& operation);
  void remove(NodeOperation& operation) noexcept;
  bool has_room(std::uint64_t number) const;
  void announce();
  [[noreturn]] void time_out(const Subject& subject, const std::string& time,
                             const std::vector<int>& missing);
  [[noreturn]] void fail_without(const Subject& subject, int peer);
  /// After so many looks that found nothing.
  void relax(std::int64_t looks, int peer, std::uint32_t bell) const;
  void announce_end() noexcept;

  NodeSeats seats_;
  std::vector<int> ranks_;
  std::shared_ptr<NodeMemory> memory_;
  MpiLink& link_;
  std::int64_t process_ = process_id();
  std::recursive_mutex busy_;  // during every call, and for who helps
  std::int64_t calls_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t announced_ = 0;
  // Not ended, in order. There is room for all that were made: how many are
  // under way at a time is not the same in every step.
  std::vector<NodeOperation*> live_;
  std::size_t made_ = 0;
};

template <class Lacks>
void NodeTraffic::wait(const Subject& subject, const Lacks& lacks) {
  WaitClock clock(link_.timeout());
  int peer = 0;
  for (std::int64_t looks = 0;; ++looks) {
    progress();
    // Read first: what rings after this wakes.
    std::uint32_t bell = peer < size() ? seats_.bell(peer) : 0;
    if (peer < size() && (peer == self() || !lacks(peer))) {
      for (peer = 0; peer < size(); ++peer)
        if (peer != self() && lacks(peer)) break;
      if (peer == size()) return;
      continue;
    }
    if (seats_.seat(peer).gone.load(std::memory_order_acquire) != 0) {
      // What it has given before it gave up counts.
      progress();
      if (lacks(peer)) fail_without(subject, peer);
    }
    if (clock.expired()) {
      std::vector<int> missing;
      for (int each = 0; each < size(); ++each)
        if (each != self() && lacks(each)) missing.push_back(rank_of(each));
      time_out(subject, clock.text(), missing);
    }
    if (looks % 32 == 31 || looks > yielding_looks) let_all_go_on();
    relax(looks, peer, bell);
  }
}

}  // namespace kzero::detail
