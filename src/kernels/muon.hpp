// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Muon's update of a matrix: kzero/rule.hpp has the equations.
#pragma once

#include <array>
#include <cstdint>
#include <kzero/matrix_rule.hpp>

namespace kzero::detail {

struct MuonStep {
  double learning_rate = 0.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
};

/// For float and double, with MatrixTask::step a MuonStep. They allocate
/// nothing. The bits are those of one BLAS on one kind of processor.
extern const std::array<MatrixFunction, 2> muon_functions;

/// Of work memory, for a matrix of rows x columns.
std::int64_t muon_work_elements(std::int64_t rows, std::int64_t columns);

}  // namespace kzero::detail
