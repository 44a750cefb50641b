// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How a ShardedOptimizer works. Every rank gives the same values.
#pragma once

#include <kzero/plan.hpp>
#include <kzero/rule.hpp>
#include <map>
#include <optional>
#include <string>

namespace kzero {

/// at_step: gradients are reduced, parameters updated and gathered in step().
enum class Schedule { at_step };

/// at_step: the gather is complete when step() returns.
enum class GatherMode { at_step };

/// What step() does when the averaged gradient holds a NaN or an infinity,
/// which any rank's contribution can cause. The ranks decide alike.
class Nonfinite {
 public:
  enum class Action { report, skip, throw_after, ignore };

  /// Updates all the same; the report tells. The default.
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
  Action action_ = Action::report;
  int limit_ = 0;
};

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
  /// A number, finite and above 0, or InvalidArgument is thrown.
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
  /// Rules by name of the group; each must have a parameter.
  std::map<std::string, Rule> groups = {};
  Schedule schedule = Schedule::at_step;
  GatherMode gather = GatherMode::at_step;
  /// The averaged gradient is scaled to at most this global 2-norm.
  std::optional<double> clip_norm = std::nullopt;
  Nonfinite nonfinite = Nonfinite::report;
  Reduction reduction = Reduction::mean;
  PlanOptions plan = {};
};

}  // namespace kzero
