// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The loss scale of an optimizer from step to step.
#pragma once

#include <cstdint>
#include <kzero/scaler.hpp>

namespace kzero::detail {

/// What changes; the same on every rank.
struct LossScaleState {
  double scale = 1.0;
  std::int64_t good_steps = 0;  // since the last growth or overflow
  std::int64_t hysteresis_left = 1;
};

/// State of a scaler before the first step.
LossScaleState initial_state(const Scaler& scaler);

/// Whether gradients can be multiplied by 1/(divisor*scale): both it and the
/// scale are normal float32 numbers.
bool is_usable(double scale, double divisor);

/// State after a step; overflow: whether a gradient was not finite. Equation:
/// include/kzero/scaler.hpp. divisor: of the sum over ranks.
LossScaleState next_state(const Scaler& scaler, const LossScaleState& state,
                          bool overflow, double divisor);

}  // namespace kzero::detail
