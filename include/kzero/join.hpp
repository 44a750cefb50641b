// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Training on uneven inputs: ranks that have run out keep the others company.
#pragma once

#include <kzero/sharded_optimizer.hpp>
#include <memory>
#include <vector>

namespace kzero {

/// What Reduction::mean divides by once ranks have run out of inputs.
/// active: the ranks that still step. all: the ranks of the communicator.
enum class JoinDivisor { active, all };

/// What happens in the first step that not every rank makes.
/// shadow: the ranks that have run out take part with zero gradients.
/// refuse: every rank throws InvalidArgument, and nothing of that step is done.
enum class Uneven { shadow, refuse };

struct JoinOptions {
  JoinDivisor divisor = JoinDivisor::active;
  Uneven uneven = Uneven::shadow;
};

/// Lets ranks make different numbers of steps:
///
///   kzero::Join join(optimizer);
///   for (const Batch& batch : my_batches) {
///     compute_gradients(batch, optimizer);
///     optimizer.step();
///   }
///   join.finish();
///
/// A rank that has no more inputs calls finish(), which takes part in the steps
/// of the others with gradients of zero until all ranks are there. A parameter
/// that is kept when unmarked stays as it is when no active rank has marked it.
/// Hyperparameters are those of the ranks that still step. Afterwards every
/// rank has the same parameters.
///
/// Several optimizers over the same ranks can join together. The active ranks
/// step them in the same order, in any pattern.
///
/// Each step of a joined optimizer costs one more small exchange. Other
/// collective calls of a joined optimizer (saving, writing parameters,
/// rebuilding buckets) need every rank: make them while no rank has run out, or
/// after finish(). Where there is a model-parallel group, its ranks run out
/// together. One thread at a time calls a join and its optimizers, which
/// outlive it.
class Join {
 public:
  /// Collective over the optimizers' communicators, which have the same ranks
  /// in the same order. Throws InvalidArgument on every rank when they have
  /// not, when options or numbers of optimizers differ, an optimizer has joined
  /// already or stands between a mark and step(); on this rank for no optimizer
  /// and a null one.
  explicit Join(std::vector<ShardedOptimizer*> optimizers,
                JoinOptions options = {});
  explicit Join(ShardedOptimizer& optimizer, JoinOptions options = {});

  /// Leaves the join and waits for nobody. Without finish(), the steps of other
  /// ranks wait for this one until their timeout.
  ~Join();
  Join(Join&&) noexcept;
  Join& operator=(Join&&) noexcept;

  /// Collective. This rank has no more inputs: returns when no rank has. The
  /// join is over then.
  /// Throws what the steps of the others throw on all ranks (then it can be
  /// called again), InvalidArgument on every rank when a rank calls it between
  /// a mark and step(), and with Uneven::refuse when others still step.
  void finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace kzero
