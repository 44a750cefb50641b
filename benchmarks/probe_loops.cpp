// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Compiled once for each instruction set, like the host kernels.
#include <type_traits>

#include "kernels/host/host_kernels.hpp"
#include "probes.hpp"

namespace kzero::bench {
namespace {

using detail::UpdateTile;

// With a mask of 0 every array is written with what it has, which the compiler
// does not know.
template <class Bits, class Parameter>
KZERO_FUNCTION void touch(Bits mask, std::int64_t count,
                          const Bits* __restrict gradient,
                          Bits* __restrict main,
                          Parameter* __restrict parameter,
                          Bits* __restrict state0, Bits* __restrict state1) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits change = gradient[i] & mask;
    state0[i] ^= change;
    state1[i] ^= change;
    const Bits value = main[i] ^ change;
    main[i] = value;
    if constexpr (sizeof(Parameter) == 2)
      parameter[i] = static_cast<Parameter>(value >> 16);
  }
}

template <class Bits, class Parameter>
void update(const UpdateTile& tile) {
  touch<Bits, Parameter>(
      tile.gradient_factor == 1.0 ? 0 : 1, tile.count,
      static_cast<const Bits*>(tile.gradient), static_cast<Bits*>(tile.main),
      static_cast<Parameter*>(tile.parameter),
      static_cast<Bits*>(tile.state[0]), static_cast<Bits*>(tile.state[1]));
}

double squares(const float* __restrict values, std::int64_t count) {
  constexpr int lanes = 16;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (; i < count; ++i)
    sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (int lane = 1; lane < lanes; ++lane) sums[0] += sums[lane];
  return sums[0];
}

void scale(float* __restrict values, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

}  // namespace

#define KZERO_PROBES KZERO_CONCAT(probes_, KZERO_INSTRUCTION_SET)
// NOLINTNEXTLINE(misc-definitions-in-headers)
constinit const Probes KZERO_PROBES = {
    KZERO_INSTRUCTION_SET_NAME,
    {update<std::uint32_t, std::uint16_t>, update<std::uint32_t, std::uint16_t>,
     update<std::uint32_t, std::uint32_t>,
     update<std::uint64_t, std::uint64_t>},
    squares,
    scale};

}  // namespace kzero::bench
