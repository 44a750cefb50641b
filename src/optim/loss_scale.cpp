// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/loss_scale.hpp"

#include <algorithm>
#include <limits>

namespace kzero::detail {

LossScaleState initial_state(const Scaler& scaler) {
  return {scaler.scaling().initial_scale, 0, scaler.scaling().hysteresis};
}

bool is_usable(double scale, double divisor) {
  using Limits = std::numeric_limits<float>;
  const auto is_normal = [](double x) {
    return x >= static_cast<double>(Limits::min()) &&
           x <= static_cast<double>(Limits::max());
  };
  return is_normal(scale) && is_normal(1.0 / (divisor * scale));
}

LossScaleState next_state(const Scaler& scaler, const LossScaleState& state,
                          bool overflow, double divisor) {
  if (scaler.kind() != Scaler::Kind::dynamic) return state;
  const DynamicScaler& scaling = scaler.scaling();
  LossScaleState next = state;
  if (overflow) {
    next.good_steps = 0;
    // Once used up it stays so until the next growth, and need not be counted.
    next.hysteresis_left = std::max(std::int64_t{0}, state.hysteresis_left - 1);
    const double shrunk =
        std::max(state.scale * scaling.backoff, scaling.minimum);
    if (next.hysteresis_left == 0 && is_usable(shrunk, divisor))
      next.scale = shrunk;
    return next;
  }
  if (++next.good_steps < scaling.growth_interval) return next;
  next.good_steps = 0;
  next.hysteresis_left = scaling.hysteresis;
  const double grown = state.scale * scaling.growth;
  if (is_usable(grown, divisor)) next.scale = grown;
  return next;
}

}  // namespace kzero::detail
