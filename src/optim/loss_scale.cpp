// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/loss_scale.hpp"

#include <algorithm>
#include <limits>

namespace kzero::detail {

LossScaleState initial_state(const Scaler& scaler) {
  return {scaler.scaling().initial_scale, 0, scaler.scaling().hysteresis};
}

LossScaleState next_state(const Scaler& scaler, const LossScaleState& state,
                          bool overflow) {
  if (scaler.kind() != Scaler::Kind::dynamic) return state;
  using Limits = std::numeric_limits<float>;
  const DynamicScaling& scaling = scaler.scaling();
  LossScaleState next = state;
  if (overflow) {
    next.good_steps = 0;
    // Once used up it stays so until the next growth, and need not be counted.
    next.hysteresis_left = std::max(std::int64_t{0}, state.hysteresis_left - 1);
    if (next.hysteresis_left == 0)
      next.scale = std::max({state.scale * scaling.backoff, scaling.minimum,
                             static_cast<double>(Limits::min())});
    return next;
  }
  if (++next.good_steps < scaling.growth_interval) return next;
  next.good_steps = 0;
  next.hysteresis_left = scaling.hysteresis;
  const double grown = state.scale * scaling.growth;
  if (grown <= static_cast<double>(Limits::max())) next.scale = grown;
  return next;
}

}  // namespace kzero::detail
