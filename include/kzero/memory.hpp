// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How much memory an optimizer takes, and for what.
#pragma once

#include <cstdint>

namespace kzero {

/// Bytes that an optimizer holds on a rank, by purpose.
struct Memory {
  /// Flat parameter buckets; none for parameters in the caller's own memory. Of
  /// buckets that the ranks of a node have in common, this rank's part.
  std::int64_t parameters = 0;
  /// Flat gradient buckets.
  std::int64_t gradients = 0;
  /// Averaged gradients, where gradients are of another type.
  std::int64_t averaged = 0;
  /// Main parameters of 16-bit parameters and of those in the caller's memory;
  /// others are their own main parameters.
  std::int64_t main = 0;
  /// State arrays of the rules.
  std::int64_t moments = 0;
  /// What the communicator takes the peers' gradients in (mpi: two pieces of a
  /// reduction), and two pieces through which parameters in the caller's memory
  /// are gathered.
  std::int64_t staging = 0;
  /// What rules for matrices (Muon, MatrixRule) compute in, for the largest
  /// matrix that this rank owns. Plan::memory(), which knows no rules, says 0.
  std::int64_t work = 0;

  /// What is sharded: a rank of P holds a P-th of it, or what it owns where
  /// parameters have owners.
  std::int64_t state() const { return averaged + main + moments; }
  std::int64_t total() const {
    return parameters + gradients + state() + staging + work;
  }
};

}  // namespace kzero
