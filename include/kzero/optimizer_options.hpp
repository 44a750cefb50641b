// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How a ShardedOptimizer works. Every rank gives the same values.
#pragma once

#include <kzero/communicator.hpp>
#include <kzero/plan.hpp>
#include <kzero/reduction_hook.hpp>
#include <kzero/rule.hpp>
#include <kzero/scaler.hpp>
#include <kzero/trace.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace kzero {

/// at_step: gradients are reduced, parameters updated and gathered in step().
/// after_backward: a bucket's reduction starts when its last parameter is
/// marked ready, in layout order on every rank, while the backward pass goes
/// on; parameters are updated in step().
/// interleaved: likewise, and each bucket is updated and gathered as soon as it
/// is reduced, while later ones are still computed. What is marked on every
/// rank changes before step() then. Nothing may need the whole gradient first:
/// clip norm, a dynamic scaler, Nonfinite::skip or throw_after and trust ratios
/// are refused.
enum class Schedule { at_step, after_backward, interleaved };

/// at_step: the gather is complete when step() returns.
/// overlapped: buckets are gathered while the next forward pass runs, in its
/// order and one bucket ahead (with a thread, as fast as they come, two at a
/// time; with Schedule::interleaved, as the updates end, in layout order).
/// ShardedOptimizer::parameter() waits for its own bucket and starts the
/// next one; views that were taken before step() may be
/// read after wait_parameters() only.
enum class GatherMode { at_step, overlapped };

/// What goes on with transfers while the caller computes.
/// thread: one of the optimizer's own. Needs an MPI that was initialised with
/// MPI_THREAD_MULTIPLE, and a core that is idle.
/// calls: no thread. Transfers go on when the caller calls mark_ready(),
/// zero_gradients(), step(), parameter() or another call that waits; what the
/// network does by itself goes on anyway. A rank that waits in parameter() then
/// waits for calls of the others: read parameters on every rank, or call
/// wait_parameters() on every rank before one of them reads alone. automatic: a
/// thread where something overlaps, MPI permits it and every rank has a spare
/// core.
enum class Progress { automatic, thread, calls };

/// What step() does when the averaged gradient holds a NaN or an infinity,
/// which any rank's contribution can cause. The ranks decide alike.
class Nonfinite {
 public:
  enum class Action { automatic, report, skip, throw_after, ignore };

  /// skip with a dynamic scaler, else report. The default.
  static const Nonfinite automatic;
  /// Updates all the same; the report tells.
  static const Nonfinite report;
  /// Leaves parameters, state and counts, and clears the gradients.
  static const Nonfinite skip;
  /// Updates all the same and does not look.
  static const Nonfinite ignore;
  /// Skips, and throws NonfiniteError on every rank at the steps-th such step
  /// in a row. Throws InvalidArgument for steps below 1.
  static Nonfinite throw_after(int steps);

  Nonfinite() = default;
  Action action() const { return action_; }
  int limit() const { return limit_; }
  friend bool operator==(const Nonfinite&, const Nonfinite&) = default;

 private:
  constexpr explicit Nonfinite(Action action, int limit = 0)
      : action_(action), limit_(limit) {}
  Action action_ = Action::automatic;
  int limit_ = 0;
};

inline constexpr Nonfinite Nonfinite::automatic{Action::automatic};
inline constexpr Nonfinite Nonfinite::report{Action::report};
inline constexpr Nonfinite Nonfinite::skip{Action::skip};
inline constexpr Nonfinite Nonfinite::ignore{Action::ignore};

/// What the sum of the ranks' gradients is divided by.
class Reduction {
 public:
  /// The number of ranks. The default.
  static const Reduction mean;
  /// Nothing.
  static const Reduction sum;
  /// A normal float32 number above 0, or InvalidArgument is thrown.
  static Reduction divide_by(double divisor);

  Reduction() = default;
  /// The divisor for this many ranks.
  double divisor(int ranks) const { return divisor_ == 0 ? ranks : divisor_; }
  friend bool operator==(const Reduction&, const Reduction&) = default;

 private:
  constexpr explicit Reduction(double divisor) : divisor_(divisor) {}
  double divisor_ = 0;  // 0: the number of ranks
};

inline constexpr Reduction Reduction::mean{0.0};
inline constexpr Reduction Reduction::sum{1.0};

struct OptimizerOptions {
  /// For parameters whose group is not in groups.
  Rule rule = {};
  /// Rules by name of the group. A group without a parameter on this rank is
  /// legal: it can be read, changed and saved.
  std::map<std::string, Rule> groups = {};
  Schedule schedule = Schedule::at_step;
  GatherMode gather = GatherMode::at_step;
  Progress progress = Progress::automatic;
  /// The averaged gradient is scaled to at most this global 2-norm.
  std::optional<double> clip_norm = std::nullopt;
  /// A dynamic scaler needs skip or throw_after.
  Nonfinite nonfinite = Nonfinite::automatic;
  Scaler scaler = Scaler::none;
  Reduction reduction = Reduction::mean;
  /// Called around each bucket's reduction, if there is one.
  ReductionHook reduction_hook = nullptr;
  PlanOptions plan = {};
  /// Parameters once a node: its ranks have them in common, where the
  /// communicator has memory for that (Backend::node); gathers inside a node
  /// copy nothing then. They are read through const views and written by
  /// write_parameters(), loads and step() alone: a view to write to is refused,
  /// whatever the communicator. A rank reads them, as always, until it marks
  /// them or steps. Parameters in the caller's own memory stay there.
  bool share_parameters = false;
  /// Once, at construction: sizes of buckets (plan.bucket_bytes among them) and
  /// ways of sending are timed, and the fastest is taken by all ranks;
  /// describe() says which. It takes a second or two, and memory for 64 MiB of
  /// gradients meanwhile. Off for runs that are to be repeated to the bit: with
  /// a clip norm, the last bits of the norm depend on the buckets.
  bool autotune = false;
  /// The ranks that hold the other parts of this rank's copy of the model
  /// (tensor and pipeline parallelism), if there are any. Norm, zero count,
  /// non-finite elements and skipped steps are then those of the whole model.
  /// A communicator of its own: every rank of it steps when this one does.
  /// Either every rank of the optimizer's communicator gives one, or none.
  std::shared_ptr<Communicator> model_parallel = nullptr;
  /// Takes down when what happened on this rank. Each rank may have one or not.
  std::shared_ptr<Trace> trace = nullptr;
};

}  // namespace kzero
