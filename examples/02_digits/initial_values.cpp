// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "initial_values.hpp"

#include <cmath>

#include "random.hpp"

namespace digits {

std::vector<float> initial_weights(std::uint64_t seed, int layer, int outputs,
                                   int inputs, double gain) {
  // Streams of weights are even, of epochs odd.
  Random random(seed, 2 * static_cast<std::uint64_t>(layer));
  const double bound = gain * std::sqrt(3.0 / inputs);
  std::vector<float> weights(static_cast<std::size_t>(outputs) *
                             static_cast<std::size_t>(inputs));
  for (float& weight : weights) {
    weight = static_cast<float>(bound * (2.0 * random.uniform() - 1.0));
  }
  return weights;
}

}  // namespace digits
