// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What happened in one step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <kzero/parameter_set.hpp>
#include <optional>

namespace kzero {

/// Where NaNs and infinities came from.
struct NonfiniteSource {
  /// The lowest rank (of the optimizer's communicator) whose own gradient was
  /// not finite; empty when every rank's was, and only their sum overflowed.
  std::optional<int> rank;
  /// The first parameter, in order of declaration, for which that holds.
  ParameterId parameter;
  /// Rank in the model-parallel group; 0 without one. The parameter is one of
  /// that rank's.
  int model_parallel_rank = 0;
};

/// Where the time of the calling thread goes, inside the library.
/// read: waiting for gathers outside of step(), or for the last step's in it.
/// ready: mark_ready(), from the end of the work it waits for.
/// reduce: in step(), until the averaged gradients are there; the update too
/// where it is done in one pass with the sum.
/// exchange: in step(), the totals and trust ratios of all ranks; in a join,
/// who steps. update, gather: in step().
enum class Phase { read, ready, reduce, exchange, update, gather };
inline constexpr std::size_t phases = 6;

namespace detail {
struct StepRecord {
  bool updated = false;
  double gradient_norm = 0.0;
  std::int64_t zero_count = 0;
  std::int64_t nonfinite = 0;
  std::optional<NonfiniteSource> nonfinite_source;
  double loss_scale = 1.0;
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
  std::optional<double> loss;
  std::array<double, phases> seconds = {};
  double exposed_seconds = 0.0;
  std::int64_t bytes_sent = 0;
};
}  // namespace detail

/// The same on every rank, but for loss(), the times and bytes_sent().
class StepReport {
 public:
  StepReport() = default;
  explicit StepReport(const detail::StepRecord& record) : record_(record) {}

  /// False when the step was skipped.
  bool updated() const { return record_.updated; }

  /// 2-norm of the averaged gradient over all parameters of the model, before
  /// clipping. Each parameter counts once, whoever holds it.
  double gradient_norm() const { return record_.gradient_norm; }

  /// Elements of the averaged gradient that are 0, counted likewise.
  std::int64_t zero_count() const { return record_.zero_count; }

  /// Elements of the averaged gradient that are NaN or infinite, counted
  /// likewise, but at least 1 when there is one anywhere; 0 with
  /// Nonfinite::ignore.
  std::int64_t nonfinite() const { return record_.nonfinite; }

  /// Who brought the first of them; empty when nonfinite() is 0.
  const std::optional<NonfiniteSource>& nonfinite_source() const {
    return record_.nonfinite_source;
  }

  /// What the gradients were divided by beside the divisor of the sum.
  double loss_scale() const { return record_.loss_scale; }

  /// Steps skipped by this optimizer so far, and how many of them came last
  /// in a row.
  std::int64_t skipped_total() const { return record_.skipped_total; }
  std::int64_t skipped_in_a_row() const { return record_.skipped_in_a_row; }

  /// What the closure given to step() returned on this rank.
  std::optional<double> loss() const { return record_.loss; }

  /// Seconds of this rank's calling thread, from the end of the last step()
  /// (or construction) to the end of this one.
  double seconds(Phase phase) const {
    return record_.seconds[static_cast<std::size_t>(phase)];
  }

  /// Exposed communication: seconds of them in which it waited for other ranks
  /// and could do nothing else.
  double exposed_seconds() const { return record_.exposed_seconds; }

  /// Bytes that this rank has sent in reductions and gathers of buckets since
  /// the last step() that returned; nothing of the small exchanges between
  /// them.
  std::int64_t bytes_sent() const { return record_.bytes_sent; }

 private:
  detail::StepRecord record_;
};

}  // namespace kzero
