// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How much memory an optimizer takes, and for what.
#pragma once

#include <cstdint>

namespace kzero {

/// Bytes that an optimizer holds on this rank, by purpose.
struct Memory {
  std::int64_t parameters = 0;  // flat parameter buckets
  std::int64_t gradients = 0;   // flat gradient buckets
  std::int64_t averaged = 0;    // averaged shard, where gradients are 16-bit
  std::int64_t main = 0;        // float32 main parameters of 16-bit ones
  std::int64_t moments = 0;     // state arrays of the rules
  std::int64_t staging = 0;     // what the communicator takes peers' data in

  /// What is sharded: a rank of P holds a P-th of it.
  std::int64_t state() const { return averaged + main + moments; }
  std::int64_t total() const {
    return parameters + gradients + state() + staging;
  }
};

}  // namespace kzero
