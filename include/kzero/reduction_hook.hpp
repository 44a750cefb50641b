// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A function of the caller's own around the reduction of each bucket: to
// compress what is sent, to log it, or to reduce in another way.
#pragma once

#include <cstdint>
#include <functional>
#include <kzero/communicator.hpp>
#include <kzero/dtype.hpp>
#include <kzero/plan.hpp>
#include <span>

namespace kzero {

/// The reduction of one bucket that is about to start, as a hook sees it. Valid
/// until the hook returns.
class BucketReduction {
 public:
  /// Of the bucket, in Plan::buckets(). Buckets come in ascending order, each
  /// once a step, and in the same order on every rank.
  std::int64_t index() const { return arguments_.index; }

  /// Whether it is the last one of the step.
  bool is_last() const;

  /// Whose gradients they are, in the order of memory.
  std::span<const ParameterId> parameters() const;

  /// Where a parameter's gradient lies, in elements of the bucket. Throws
  /// InvalidArgument for one that is not in the bucket.
  Range range(ParameterId id) const;

  DType dtype() const { return arguments_.dtype; }

  /// Elements, padding included, which holds zeros or what was left there.
  std::int64_t size() const { return arguments_.shards.total(); }

  /// This rank's own gradients. They may be changed here; afterwards they are
  /// the optimizer's until the step ends. Throws InvalidArgument when T is not
  /// of dtype().
  template <class T>
  std::span<T> gradients() const {
    require(dtype_of<T>);
    return {static_cast<T*>(gradients_), static_cast<std::size_t>(size())};
  }

  /// How the bucket is cut: rank r gets the contributions to elements
  /// shards().range(r).
  const ShardTable& shards() const { return arguments_.shards; }

  /// For collectives of the hook's own, which every rank makes in the same
  /// order.
  Communicator& communicator() const { return communicator_; }

  /// Starts the communicator's own reduction. Once.
  ReductionTicket start() const;

  /// Likewise, of size() elements of another type that stand for the gradients.
  /// They are added up and averaged as gradients of that type are: 16-bit ones
  /// in float32. The memory stays as it is until the step ends: best from
  /// communicator().allocate(), and kept where a step fails.
  ReductionTicket start(const void* gradients, DType dtype) const;

 private:
  friend struct HookedReduction;
  BucketReduction(Communicator& communicator, const Plan& plan, void* gradients,
                  const ReduceArguments& arguments)
      : communicator_(communicator),
        plan_(plan),
        gradients_(gradients),
        arguments_(arguments) {}
  void require(DType dtype) const;

  Communicator& communicator_;
  const Plan& plan_;
  void* gradients_;
  ReduceArguments arguments_;
  mutable bool started_ = false;
};

/// Called for each bucket of a step when its gradients are complete, in
/// mark_ready() or step(), or on the optimizer's own thread (Progress::thread),
/// where Kokkos must not be called. Returns what BucketReduction::start() has
/// given, or a PendingReduction of its own: one that gives the contributions to
/// this rank's shard in ascending pieces, each of which ends on a multiple of
/// ReduceArguments::piece_granularity (2048 elements) or with the shard. One
/// that wraps what start() has given passes every call on, wait() too, at the
/// end of the step.
/// A step that is made again, after ranks have disagreed on hyperparameters,
/// calls it again: one that changes gradients in place finds them changed.
/// Every rank gives a hook or none does. An exception, or no ticket, ends the
/// optimizer with a CommunicationError that names the bucket; the other ranks
/// get theirs when the communicator's timeout is over.
using ReductionHook = std::function<ReductionTicket(BucketReduction&)>;

}  // namespace kzero
