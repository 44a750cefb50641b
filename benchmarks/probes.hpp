// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What kernels are measured against, compiled for each instruction set as they
// are: loops without arithmetic, and the passes of an unfused update.
#pragma once

#include <array>
#include <cstdint>
#include <kzero/element_rule.hpp>
#include <string_view>

namespace kzero::bench {

struct Probes {
  std::string_view name;
  /// By the parameters' type: reads and writes what an update with two state
  /// arrays does, and changes nothing but the parameter, while the gradient's
  /// factor is 1.
  std::array<detail::UpdateFunction, 4> update;
  /// The sum of the squares.
  double (*squares)(const float* values, std::int64_t count);
  void (*scale)(float* values, std::int64_t count, float factor);
};

extern const Probes probes_generic;
extern const Probes probes_avx2;
extern const Probes probes_avx512;

/// Of the instruction set that the kernels use.
const Probes& probes();

}  // namespace kzero::bench
