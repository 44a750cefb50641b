// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// From a rule and an update count to what a kernel needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/rule.hpp>

#include "kernels/kernels.hpp"

namespace kzero::detail {

/// A step of kernels/arithmetic.hpp, in float or double, a MuonStep, or a rule
/// of somebody's own; and the functions to call with it, by the parameters'
/// type.
struct PreparedStep {
  alignas(maximum_rule_alignment) std::byte step[maximum_rule_bytes] = {};
  const std::array<UpdateFunction, 4>* update = nullptr;
  /// Where the rule has a trust ratio: the pass before update.
  const std::array<TrustFunction, 4>* trust = nullptr;
  /// Of a rule for matrices, instead of update: by the main parameters' type,
  /// float and double.
  const std::array<MatrixFunction, 2>* matrix = nullptr;
  std::int64_t t = 0;
  double sign = 1.0;  // of the gradient
};

/// The rule's step for the t-th update (from 1) of parameters of this type,
/// with the kernels of the instruction set in use.
/// Bias corrections are computed in double.
PreparedStep prepare_step(const Rule& rule, std::int64_t t, DType dtype);

/// Elements of work memory that a rule for matrices needs for one of rows x
/// columns. scaled: its gradient may come with a factor, beside the rule's
/// sign.
std::int64_t matrix_work_elements(const Rule& rule, std::int64_t rows,
                                  std::int64_t columns, bool scaled);

/// Whether the rule's updates take two passes with a ratio in between.
bool uses_trust_ratio(const Rule& rule);

/// |p|/|u| from the sums over a whole parameter; 1 where either norm is 0 or
/// the rule has no weight decay. The rule must use a trust ratio.
double trust_ratio(const Rule& rule, const TrustSums& sums);

}  // namespace kzero::detail
