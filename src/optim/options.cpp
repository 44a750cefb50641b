// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <cmath>
#include <kzero/error.hpp>
#include <kzero/optimizer_options.hpp>

#include "core/message.hpp"

namespace kzero {

Nonfinite Nonfinite::throw_after(int steps) {
  if (steps < 1)
    throw InvalidArgument(detail::concat("Nonfinite::throw_after(", steps,
                                         "): expected 1 step or more"));
  return Nonfinite(Action::throw_after, steps);
}

Reduction Reduction::divide_by(double divisor) {
  if (!(std::isfinite(divisor) && divisor > 0.0))
    throw InvalidArgument(
        detail::concat("Reduction::divide_by(", divisor,
                       "): expected a finite number above 0"));
  return Reduction(divisor);
}

}  // namespace kzero
