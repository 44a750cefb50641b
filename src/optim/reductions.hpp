// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The reductions of a step: bucket by bucket in layout order, which is the
// same on every rank whenever each of them starts.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/plan.hpp>
#include <kzero/reduction_hook.hpp>
#include <kzero/trace.hpp>
#include <memory>
#include <span>
#include <vector>

#include "optim/bucket_work.hpp"

namespace kzero::detail {

/// One piece of this rank's shard of a bucket, not yet added up; or that there
/// are no more of them.
struct Arrival {
  std::int64_t bucket = -1;                      // -1: nothing has come
  const Contributions* contributions = nullptr;  // null: the bucket's end
};

class Reductions {
 public:
  Reductions() = default;
  /// plan, buckets and hook outlive it. sum: for what is added up before it is
  /// sent, or null. hook may be empty, trace null.
  Reductions(std::shared_ptr<Communicator> communicator, const Plan& plan,
             std::span<const BucketWork> buckets, OrderedSum sum,
             const ReductionHook& hook, std::shared_ptr<Trace> trace);

  /// Starts what is not started yet of the first count buckets.
  void start(std::int64_t count);

  /// The next piece or end, if it has come: nothing is waited for. It is valid
  /// until the next call of poll() or wait().
  Arrival poll();

  /// The next piece or end. One must be under way.
  Arrival wait();

  /// So many leading buckets have come whole, and were given.
  std::int64_t ended() const { return ended_; }
  bool under_way() const { return ended_ < started_; }

  /// Waits until all buckets that have ended may be written again.
  void settle();

  /// Likewise; the next step's begin with bucket 0. None may be under way.
  void clear();

  /// Seconds spent in waits since it was asked last.
  double take_waited();

 private:
  ReductionTicket start_one(std::int64_t bucket);
  /// The next piece of the first one; ends it when there is none.
  Arrival next();
  bool test();
  void require_piece(const Contributions& piece) const;

  std::shared_ptr<Communicator> communicator_;
  const Plan* plan_ = nullptr;
  std::span<const BucketWork> buckets_;
  OrderedSum sum_ = nullptr;
  const ReductionHook* hook_ = nullptr;  // null: none
  std::shared_ptr<Trace> trace_;
  std::vector<ReductionTicket> tickets_;  // by bucket
  std::int64_t given_ = 0;                // elements of the first one's shard
  std::int64_t started_ = 0;
  std::int64_t ended_ = 0;
  std::int64_t settled_ = 0;
  double waited_ = 0.0;
};

}  // namespace kzero::detail
