// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The gathers that follow a step, or go on within one. Their order is the same
// on every rank, whenever each of them starts.
#pragma once

#include <atomic>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/plan.hpp>
#include <kzero/trace.hpp>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "optim/bucket_work.hpp"
#include "optim/hands.hpp"
#include "optim/staged_piece.hpp"
#include "storage/storage.hpp"

namespace kzero::detail {

/// How far gathers go by themselves.
/// updated: as far as update_ended() says.
/// one: one bucket further than what has been waited for.
/// all: to the end.
enum class Ahead { updated, one, all };

/// layout: as the updates end, one after another.
/// forward: chunk by chunk, and within a chunk in the order of the forward
/// pass.
enum class GatherOrder { layout, forward };

class Gathers {
 public:
  /// plan, parameters, buckets and storage outlive it. window: transfers
  /// under way at a time, at most 4 (and 2 where parameters lie in the caller's
  /// own memory). trace may be null.
  Gathers(std::shared_ptr<Communicator> communicator, const Plan& plan,
          const ParameterSet& parameters, std::span<const BucketWork> buckets,
          const Storage& storage, GatherOrder order, std::int64_t window,
          std::shared_ptr<Trace> trace);

  /// The shards are new, or with Ahead::updated will be: all buckets are to be
  /// gathered. None may be under way.
  void begin(Ahead ahead);

  /// After begin(Ahead::updated), in GatherOrder::layout: so many leading
  /// buckets have new shards. With the last one the update has ended: nothing
  /// is to be waited for until then.
  void update_ended(std::int64_t buckets);

  /// All go as far as advance() is called, whether or not this rank waits for
  /// them: another one may.
  void open_all();

  /// From now on all go to their end, and need few calls.
  void run_to_end();
  /// Gives up those that are under way: peers will not take part in all of
  /// them.
  void drop() noexcept;
  /// Likewise without the caller, whose own memory may be gone: what comes for
  /// it goes to memory of their own.
  void leave();

  /// Whether a bucket has still to come. May be called while another thread
  /// advances them.
  bool under_way() const { return under_way_.load(std::memory_order_acquire); }

  /// Starts and ends what it can without a wait. True when it did something.
  bool advance(const Hands& hands);

  /// Each waits, and lets the next bucket start.
  void wait_for_bucket(std::int64_t bucket, const Hands& hands);
  void wait_for_chunk(int chunk, const Hands& hands);
  void wait_for_all(const Hands& hands);

  /// Seconds spent in waits since it was asked last.
  double take_waited();

 private:
  /// A bucket, or a piece of one whose parameters lie in the caller's memory.
  struct Transfer {
    std::int64_t bucket = 0;
    std::int64_t piece = 0;
    bool is_first = true;  // of its bucket
    bool is_last = true;
  };

  void release_until(std::int64_t transfer);
  void wait_until(std::int64_t position, const Hands& hands);
  /// Transfers of the leading positions.
  std::int64_t transfers_of(std::int64_t positions) const {
    return positions == 0 ? 0 : end_[static_cast<std::size_t>(positions - 1)];
  }
  bool start(const Hands& hands);
  void end_first(const Hands& hands);
  Ticket& ticket(std::int64_t transfer) {
    return tickets_[static_cast<std::size_t>(transfer)];
  }
  /// No two that are under way have the same.
  StagedPiece& staged(std::int64_t transfer) {
    return transfer < first_apart_
               ? staged_[static_cast<std::size_t>(transfer) % staged_.size()]
               : staged_apart_[static_cast<std::size_t>(transfer)];
  }
  bool is_external(std::int64_t bucket) const;
  ExternalBucket external(std::int64_t bucket) const {
    return {plan_, parameters_, bucket};
  }

  std::shared_ptr<Communicator> communicator_;
  const Plan& plan_;
  const ParameterSet& parameters_;
  std::span<const BucketWork> buckets_;
  std::int64_t window_;
  bool left_ = false;
  // When left: the pieces of transfers from the first one on that starts then.
  std::vector<std::shared_ptr<void>> rooms_;
  std::vector<StagedPiece> staged_apart_;
  std::int64_t first_apart_ = std::numeric_limits<std::int64_t>::max();
  std::shared_ptr<Trace> trace_;
  std::vector<std::int64_t> order_;     // of buckets
  std::vector<std::int64_t> position_;  // by bucket, in order_
  std::vector<Transfer> transfers_;     // in order
  std::vector<std::int64_t> end_;       // by position, in transfers_
  std::vector<StagedPiece> staged_;     // two, or none
  std::vector<Ticket> tickets_;         // by transfer
  std::int64_t open_ = 0;               // positions that may start
  bool updating_ = false;
  std::int64_t started_ = 0;  // transfers
  std::int64_t ended_ = 0;
  std::int64_t released_ = 0;
  std::atomic<bool> under_way_ = false;
  double waited_ = 0.0;
};

}  // namespace kzero::detail
