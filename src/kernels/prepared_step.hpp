// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// From a rule and an update count to what a kernel needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/rule.hpp>

#include "kernels/kernels.hpp"

namespace kzero::detail {

/// A step of kernels/arithmetic.hpp, in float or double.
struct PreparedStep {
  alignas(16) std::byte step[64] = {};
  UpdateKernel kernel = UpdateKernel::adamw;
  double sign = 1.0;  // of the gradient
};

/// The rule's step for the t-th update (from 1) of parameters of this type.
/// Bias corrections are computed in double.
PreparedStep prepare_step(const Rule& rule, std::int64_t t, DType dtype);

}  // namespace kzero::detail
