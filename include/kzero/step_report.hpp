// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What happened in one step.
#pragma once

#include <cstdint>
#include <optional>

namespace kzero {

namespace detail {
struct StepRecord {
  bool updated = false;
  double gradient_norm = 0.0;
  std::int64_t zero_count = 0;
  std::int64_t nonfinite = 0;
  std::int64_t skipped_total = 0;
  std::optional<double> loss;
};
}  // namespace detail

/// The same on every rank, but for loss().
class StepReport {
 public:
  StepReport() = default;
  explicit StepReport(const detail::StepRecord& record) : record_(record) {}

  /// False when the step was skipped.
  bool updated() const { return record_.updated; }

  /// 2-norm of the averaged gradient over all parameters, before clipping.
  double gradient_norm() const { return record_.gradient_norm; }

  /// Elements of the averaged gradient that are 0.
  std::int64_t zero_count() const { return record_.zero_count; }

  /// Elements of the averaged gradient that are NaN or infinite; 0 with
  /// Nonfinite::ignore.
  std::int64_t nonfinite() const { return record_.nonfinite; }

  /// Steps skipped by this optimizer so far.
  std::int64_t skipped_total() const { return record_.skipped_total; }

  /// What the closure given to step() returned on this rank.
  std::optional<double> loss() const { return record_.loss; }

 private:
  detail::StepRecord record_;
};

}  // namespace kzero
