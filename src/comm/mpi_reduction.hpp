// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reductions by messages between pairs of ranks: every rank gets what others
// contribute to its shard, piece by piece, in two staging slots that all
// reductions of the communicator share. Ranks that can read one another's
// buckets add up what goes to the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <memory>
#include <span>
#include <vector>

#include "comm/aligned_memory.hpp"
#include "comm/block_routes.hpp"
#include "comm/mpi_messages.hpp"
#include "core/pieces.hpp"

namespace kzero::detail {

class MpiReductions;

class MpiReduction final : public PendingReduction {
 public:
  explicit MpiReduction(MpiReductions& all) : all_(all) {}

  bool free() const { return owner_ == nullptr; }

  /// Of one that was started without: where the buckets of the ranks here are,
  /// in the order of BlockRoutes::here. Nothing is sent before. next() is not
  /// called before either.
  void set_buckets(std::span<const std::byte* const> buckets);

  const Contributions* next() override;
  bool test() override;
  void wait() override;
  void release() noexcept override;

 private:
  friend class MpiReductions;

  MpiReductions& all_;
  const BlockRoutes* routes_ = nullptr;
  std::vector<const std::byte*> buckets_;  // by BlockRoutes::here
  bool has_buckets_ = false;
  ReduceArguments arguments_;
  Activity activity_;
  Pieces pieces_;
  std::int64_t own_count_ = 0;  // pieces with elements of this rank's shard
  std::int64_t posted_ = 0;     // pieces
  std::int64_t given_ = 0;      // pieces that next() has returned
  std::int64_t finished_ = 0;   // pieces that have left their slot
  bool holds_ = false;          // the caller has piece given_ - 1
  bool ended_ = true;
  bool waited_ = true;
  std::shared_ptr<void> owner_;
};

/// All reductions of a communicator, in the order of their start.
///
/// Pieces are posted in one order, which is the same on every rank: that of
/// their reductions, then ascending. A piece is posted when a slot is free. It
/// leaves its slot when its messages have ended and the caller asks for the
/// one after it; a piece of which this rank has no elements (it only sends)
/// leaves when its messages have ended.
///
/// This cannot deadlock, if every rank takes all pieces of its reductions in
/// the order of their start: let g be the first piece whose messages have not
/// ended everywhere. On every rank all pieces before g are posted and have
/// arrived, so next() gives them without a wait, and when it is asked for more
/// than one of two slots holds, it gives one back. So a slot becomes free for g
/// on every rank, g is posted by all, and its messages end. Posting needs no
/// help from inside other waits: what a slot becomes free for is posted at
/// once, by the call that frees it. Where buckets of several ranks are added
/// up, what waits for those is posted by advance(), which every wait of this
/// rank calls that is not for a piece which is posted.
class MpiReductions {
 public:
  explicit MpiReductions(MpiLink& link);

  /// Of ranks that can read their own bucket alone. owner stays alive until the
  /// ticket is released; routes as well.
  ReductionTicket start(const ReduceArguments& arguments,
                        const BlockRoutes& routes, std::shared_ptr<void> owner);

  /// Of others; goes on with set_buckets().
  MpiReduction& prepare(const ReduceArguments& arguments,
                        const BlockRoutes& routes, std::shared_ptr<void> owner);

  /// Posts what there are slots for. Does nothing within a call of a
  /// reduction, which does that itself.
  void advance();

  std::int64_t staging_bytes() const;

 private:
  friend class MpiReduction;

  struct Slot {
    explicit Slot(MpiLink& link)
        : messages(link), staging(link.health()), sums(link.health()) {}

    MpiReduction* reduction = nullptr;  // null: free
    std::int64_t piece = 0;             // of the reduction
    MessageSet messages;
    WorkSpace staging;
    WorkSpace sums;  // that are sent
    std::vector<Contribution> parts;
    Contributions contributions;
  };

  /// The slot of its first piece from the given one on; null when none is
  /// posted.
  Slot* find(const MpiReduction& reduction, std::int64_t piece);
  void post_all();
  void post(Slot& slot, MpiReduction& reduction);
  void receive_parts(Slot& slot, const MpiReduction& reduction);
  void add_up(const MpiReduction& reduction, const RankBlock& block,
              Range in_bucket, std::byte* out);
  void send_parts(Slot& slot, const MpiReduction& reduction);
  void vacate(Slot& slot);
  void reserve_memory(Slot& slot);
  void reserve_slots(const MpiReduction& reduction);
  void require_first(const MpiReduction& reduction) const;

  MpiLink& link_;
  std::array<Slot, 2> slots_;
  std::int64_t slot_bytes_ = 0;
  std::int64_t sum_bytes_ = 0;
  std::size_t part_count_ = 0;
  bool in_call_ = false;
  std::vector<Contribution> addends_;
  std::vector<MpiReduction*> started_;  // and not ended, in order
  std::vector<std::unique_ptr<MpiReduction>> pool_;
};

}  // namespace kzero::detail
