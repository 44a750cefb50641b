// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the ranks of a node write for one another to read: one seat a rank, in
// shared memory. Atomics and a system call for sleepers, nothing of MPI.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/node_memory.hpp"
#include "comm/shared_memory.hpp"

namespace kzero::detail {

enum class NodeCall : std::int32_t {
  none,
  reduce,
  all_gather,
  small_all_gather,
  barrier
};

/// One call of a collective, as a rank announces it.
struct NodeRecord {
  std::int64_t number = 0;  // of the call, of all collectives
  NodeCall call = NodeCall::none;
  std::int32_t dtype = 0;
  std::int64_t index = 0;  // of the bucket
  std::int64_t total = 0;  // elements of the bucket, or bytes
  std::int64_t shard_begin = 0;
  std::int64_t shard_size = 0;  // of this rank
  std::int32_t is_common = 0;   // the bucket, to the ranks of the node
  NodeAddress address;          // of the bucket's first element
};

/// Slot n % size is of operation n: it is taken again when every rank has done
/// what was in it.
struct alignas(64) NodeSlot {
  NodeRecord record;
  /// n + 1 when its rank has taken what it needs of operation n.
  std::atomic<std::uint64_t> done;
  /// n + 1 when what comes to its rank's bucket from other nodes is there.
  std::atomic<std::uint64_t> arrived;
};

/// Small data of one call, or of a part of one; two take turns.
struct alignas(64) NodeBox {
  static constexpr std::int64_t size = 8192;

  NodeRecord record;
  std::array<std::byte, static_cast<std::size_t>(size)> bytes;
};

struct alignas(64) NodeSeat {
  static constexpr std::uint64_t slots = 1024;

  /// Operations announced, and boxes filled.
  alignas(64) std::atomic<std::uint64_t> posted;
  std::atomic<std::uint64_t> boxes_posted;
  /// Not 0 when this rank has given the communicator up.
  std::atomic<std::uint32_t> gone;
  /// Changes whenever the rank writes one of the numbers here.
  alignas(64) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleepers;
  std::array<NodeSlot, slots> slot;
  std::array<NodeBox, 2> box;

  NodeSlot& of(std::uint64_t operation) { return slot[operation % slots]; }
  std::uint64_t done(std::uint64_t operation) {
    return of(operation).done.load(std::memory_order_acquire);
  }
};

/// The seats of the ranks of one node.
class NodeSeats {
 public:
  /// Zeros are a valid beginning.
  static std::int64_t bytes_for(int ranks) {
    return ranks * static_cast<std::int64_t>(sizeof(NodeSeat));
  }

  NodeSeats(SharedMemory memory, int ranks, int self)
      : memory_(std::move(memory)), ranks_(ranks), self_(self) {}

  int ranks() const { return ranks_; }
  int self() const { return self_; }
  NodeSeat& seat(int rank) const {
    return reinterpret_cast<NodeSeat*>(memory_.data())[rank];
  }
  NodeSeat& mine() const { return seat(self_); }

  /// Wakes who sleeps until this rank writes.
  void ring() const noexcept;

  std::uint32_t bell(int rank) const {
    return seat(rank).bell.load(std::memory_order_seq_cst);
  }
  /// Until a rank rings after its bell was read, or for some time.
  void sleep(int rank, std::uint32_t bell,
             std::chrono::nanoseconds longest) const noexcept;

 private:
  SharedMemory memory_;
  int ranks_;
  int self_;
};

}  // namespace kzero::detail
