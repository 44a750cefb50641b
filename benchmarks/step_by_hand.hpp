// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One step of AdamW with bfloat16 parameters and float32 gradients as somebody
// would write it on MPI alone; and the bytes of a step without its arithmetic,
// in the same memory.
#pragma once

#include <cstdint>
#include <kzero/bfloat16.hpp>
#include <optional>

#include "huge_vector.hpp"

namespace kzero::bench {

struct StepSize {
  std::int64_t elements = 0;  // of all parameters, a multiple of 64 * ranks
  int parameters = 32;        // of one size each
  std::optional<double> clip_norm = std::nullopt;
};

/// What every rank gives at first, of element i of all. Small integers, so that
/// sums are exact.
float first_gradient(std::int64_t i, int rank);

/// Of the parameters on a node.
enum class Copies { each, one };

class StepByHand {
 public:
  StepByHand(const StepSize& size, int ranks, int rank);

  /// Reduces, updates, gathers, zeroes the gradients.
  void run();

  /// What a step has to move: with clipping the averaged gradient too, and
  /// where each rank has parameters of its own, those of the other shards.
  void move_bytes(Copies copies);

  const HugeVector<bfloat16>& parameters() const { return parameters_; }

 private:
  /// Of the averaged gradient: what it is multiplied by in the update.
  double gradient_factor() const;

  StepSize size_;
  int ranks_;
  int rank_;
  std::int64_t shard_;
  std::int64_t steps_ = 0;
  HugeVector<float> gradients_;
  HugeVector<bfloat16> parameters_;
  HugeVector<float> averaged_;  // of the shard, as those below
  HugeVector<float> main_;
  HugeVector<float> exp_avg_;
  HugeVector<float> exp_avg_sq_;
};

}  // namespace kzero::bench
