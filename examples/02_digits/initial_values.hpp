// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The weights that training starts from.
#pragma once

#include <cstdint>
#include <vector>

namespace digits {

/// Weights of a layer in C order, outputs x inputs: uniform with variance
/// gain^2 / inputs (He et al., 2015). Biases start as zeros.
std::vector<float> initial_weights(std::uint64_t seed, int layer, int outputs,
                                   int inputs, double gain);

}  // namespace digits
