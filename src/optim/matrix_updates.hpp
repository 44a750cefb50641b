// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The updates of whole matrices (Muon, MatrixRule), beside those of tiles.
#pragma once

#include <cstdint>
#include <kzero/parameter_set.hpp>
#include <kzero/plan.hpp>
#include <kzero/rule.hpp>
#include <span>
#include <vector>

#include "optim/bucket_work.hpp"
#include "optim/marks.hpp"
#include "optim/update_classes.hpp"
#include "storage/work_memory.hpp"

namespace kzero::detail {

class MatrixUpdates {
 public:
  struct Setup {
    const Plan& plan;
    const ParameterSet& parameters;
    int rank = 0;
    /// By parameter; null for one that is not trained.
    std::span<const Rule* const> rule_of;
    bool clips = false;
  };

  MatrixUpdates() = default;
  /// Allocates the work memory.
  explicit MatrixUpdates(const Setup& setup);

  /// Updates this rank's matrices of a bucket that is trained, which work
  /// describes, one after another, but for those that are kept; all its tiles
  /// are summed. clip: a factor of the averaged gradient. Calls no Kokkos and
  /// allocates nothing; one thread at a time.
  void update(std::int64_t bucket, const BucketWork& work,
              const UpdateClasses& classes, const Marks& marks,
              double clip) const;

  std::int64_t work_bytes() const { return work_.bytes(); }

 private:
  struct Matrix {
    std::int64_t parameter = 0;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t in_shard = 0;  // where it begins
  };

  std::vector<Matrix> matrices_;     // by bucket; those with elements
  std::vector<std::int64_t> first_;  // by bucket, into matrices_; and the end
  WorkMemory work_;
};

}  // namespace kzero::detail
