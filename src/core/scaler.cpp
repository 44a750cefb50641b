// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <cmath>
#include <kzero/error.hpp>
#include <kzero/scaler.hpp>
#include <limits>
#include <string_view>

#include "core/message.hpp"

namespace kzero {
namespace {

void require(bool holds, std::string_view what, double value,
             std::string_view expected) {
  if (!holds)
    throw InvalidArgument(
        detail::concat(what, " is ", value, ", expected ", expected));
}

bool is_scale(double value) {
  using Limits = std::numeric_limits<float>;
  return value >= static_cast<double>(Limits::min()) &&
         value <= static_cast<double>(Limits::max());
}

constexpr std::string_view a_scale =
    "a normal float32 number above 0 (1.2e-38 to 3.4e38)";

}  // namespace

Scaler Scaler::constant(double scale) {
  require(is_scale(scale), "Scaler::constant: scale", scale, a_scale);
  return {Kind::constant, {.initial_scale = scale}};
}

Scaler Scaler::dynamic(const DynamicScaler& scaling) {
  require(is_scale(scaling.initial_scale), "Scaler::dynamic: initial_scale",
          scaling.initial_scale, a_scale);
  require(scaling.growth > 1.0 && std::isfinite(scaling.growth),
          "Scaler::dynamic: growth", scaling.growth, "a finite number above 1");
  require(scaling.backoff > 0.0 && scaling.backoff < 1.0,
          "Scaler::dynamic: backoff", scaling.backoff, "a number in (0, 1)");
  require(scaling.growth_interval >= 1, "Scaler::dynamic: growth_interval",
          static_cast<double>(scaling.growth_interval), "1 step or more");
  require(scaling.hysteresis >= 1, "Scaler::dynamic: hysteresis",
          static_cast<double>(scaling.hysteresis), "1 or more");
  require(scaling.minimum >= 0.0 && scaling.minimum <= scaling.initial_scale,
          "Scaler::dynamic: minimum", scaling.minimum,
          "a number from 0 to the initial scale");
  return {Kind::dynamic, scaling};
}

}  // namespace kzero
