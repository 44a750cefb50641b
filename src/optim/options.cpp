// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/error.hpp>
#include <kzero/optimizer_options.hpp>
#include <limits>

#include "core/message.hpp"

namespace kzero {

Nonfinite Nonfinite::throw_after(int steps) {
  if (steps < 1)
    throw InvalidArgument(detail::concat("Nonfinite::throw_after(", steps,
                                         "): expected 1 step or more; use "
                                         "Nonfinite::report to go on"));
  return Nonfinite(Action::throw_after, steps);
}

Reduction Reduction::divide_by(double divisor) {
  using Limits = std::numeric_limits<float>;
  if (!(divisor >= static_cast<double>(Limits::min()) &&
        divisor <= static_cast<double>(Limits::max())))
    throw InvalidArgument(
        detail::concat("Reduction::divide_by(", divisor,
                       "): expected a normal float32 number above 0 (1.2e-38 "
                       "to 3.4e38); Reduction::sum divides by nothing"));
  return Reduction(divisor);
}

}  // namespace kzero
