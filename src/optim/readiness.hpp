// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which buckets have all gradients of this rank.
#pragma once

#include <cstdint>
#include <kzero/plan.hpp>
#include <vector>

namespace kzero::detail {

class Readiness {
 public:
  Readiness() = default;
  Readiness(const ParameterSet& parameters, const Plan& plan);

  /// A parameter of this bucket is complete.
  void mark(std::int64_t bucket) {
    --missing_[static_cast<std::size_t>(bucket)];
    while (leading_ < std::ssize(missing_) &&
           missing_[static_cast<std::size_t>(leading_)] == 0)
      ++leading_;
  }

  /// So many buckets are complete, the first ones in layout order.
  std::int64_t leading() const { return leading_; }

  /// A new step.
  void clear();

 private:
  std::vector<std::int64_t> names_;    // by bucket: its parameters' names
  std::vector<std::int64_t> missing_;  // by bucket: those not marked
  std::int64_t leading_ = 0;
};

}  // namespace kzero::detail
