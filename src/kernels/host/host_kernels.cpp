// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Compiled once for each instruction set, with KZERO_INSTRUCTION_SET its name.
// Everything but the table has internal linkage or is always inlined: nothing
// compiled here for a wide instruction set may be linked into other code.
#include "kernels/host/host_kernels.hpp"

#include <type_traits>

#include "kernels/arithmetic.hpp"
#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

// A chunk stays in the first cache together with its partial sums.
constexpr std::int64_t chunk_size = 256;
constexpr int lanes = 16;
constexpr int maximum_levels = 32;

template <class In>
using SumType = std::conditional_t<std::is_same_v<In, double>, double, float>;

template <class In, class Out>
KZERO_FUNCTION void copy_chunk(const In* __restrict in, Out* __restrict out,
                               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(in[i]);
}

template <class In, class Sum>
KZERO_FUNCTION void add_chunk(const In* __restrict in, Sum* __restrict out,
                              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += static_cast<Sum>(in[i]);
}

// out = a + b, both chunks of parts.
template <class In, class Sum>
KZERO_FUNCTION void add_pair(const In* __restrict a, const In* __restrict b,
                             Sum* __restrict out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<Sum>(a[i]) + static_cast<Sum>(b[i]);
}

KZERO_FUNCTION int level_of(int rank_count) {
  return 31 - __builtin_clz(static_cast<unsigned>(rank_count));
}

// The ordered sum as a binary counter carries: partial[d] holds the sum of
// 2^level[d] ranks, levels fall with d, equal levels are added at once.
template <class In>
void sum_chunk(const Contribution* parts, std::size_t part_count,
               std::int64_t first, std::int64_t count,
               SumType<In> (&partial)[maximum_levels][chunk_size]) {
  using Sum = SumType<In>;
  int level[maximum_levels];
  int depth = 0;
  for (std::size_t i = 0; i < part_count; ++i) {
    const In* in = static_cast<const In*>(parts[i].data) + first;
    const int new_level = level_of(parts[i].rank_count);
    if (depth > 0 && level[depth - 1] == new_level) {
      add_chunk(in, partial[depth - 1], count);
      ++level[depth - 1];
    } else if (i + 1 < part_count &&
               level_of(parts[i + 1].rank_count) == new_level) {
      const In* next = static_cast<const In*>(parts[i + 1].data) + first;
      add_pair(in, next, partial[depth], count);
      level[depth++] = new_level + 1;
      ++i;
    } else {
      copy_chunk(in, partial[depth], count);
      level[depth++] = new_level;
    }
    for (; depth > 1 && level[depth - 2] == level[depth - 1]; --depth) {
      add_chunk<Sum, Sum>(partial[depth - 1], partial[depth - 2], count);
      ++level[depth - 2];
    }
  }
  for (; depth > 1; --depth)
    add_chunk<Sum, Sum>(partial[depth - 1], partial[depth - 2], count);
}

KZERO_FUNCTION bool is_nonfinite(float x) {
  return (__builtin_bit_cast(std::uint32_t, x) & 0x7f800000u) == 0x7f800000u;
}

KZERO_FUNCTION bool is_nonfinite(double x) {
  constexpr std::uint64_t exponent = 0x7ff0000000000000u;
  return (__builtin_bit_cast(std::uint64_t, x) & exponent) == exponent;
}

// Element i goes to lane i % 16; chunks start at lane 0.
template <class T>
KZERO_FUNCTION void add_squares(const T* __restrict values, std::int64_t count,
                                double* __restrict squares) {
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      squares[lane] += value * value;
    }
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    const double value = static_cast<double>(values[i]);
    squares[lane] += value * value;
  }
}

KZERO_FUNCTION double total(double (&squares)[lanes]) {
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      squares[lane] += squares[lane + width];
  return squares[0];
}

template <class T>
KZERO_FUNCTION void collect(const T* __restrict values, std::int64_t count,
                            double* __restrict squares,
                            TileStatistics& statistics) {
  using Counter =
      std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  Counter zeros = 0;
  Counter nonfinite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    zeros += values[i] == T(0) ? 1u : 0u;
    nonfinite += is_nonfinite(values[i]) ? 1u : 0u;
  }
  statistics.zeros += static_cast<std::int64_t>(zeros);
  statistics.nonfinite += static_cast<std::int64_t>(nonfinite);
  add_squares(values, count, squares);
}

// The first part with an element that is not finite, among count elements from
// first on.
template <class In>
std::size_t find_nonfinite_part(const SumTile& tile, std::int64_t first,
                                std::int64_t count) {
  for (std::size_t part = 0; part < tile.part_count; ++part) {
    const In* in = static_cast<const In*>(tile.parts[part].data) + first;
    for (std::int64_t i = 0; i < count; ++i)
      if (is_nonfinite(static_cast<SumType<In>>(in[i]))) return part;
  }
  return TileStatistics::no_part;
}

template <class In, class Out>
void sum(const SumTile& tile, TileStatistics& statistics) {
  using Sum = SumType<In>;
  alignas(64) Sum partial[maximum_levels][chunk_size];
  alignas(64) double squares[lanes] = {};
  const Sum scale = static_cast<Sum>(tile.scale);
  Out* const out = static_cast<Out*>(tile.out);
  for (std::int64_t begin = 0; begin < tile.count; begin += chunk_size) {
    const std::int64_t left = tile.count - begin;
    const std::int64_t count = left < chunk_size ? left : chunk_size;
    sum_chunk<In>(tile.parts, tile.part_count, tile.first + begin, count,
                  partial);
    Sum* __restrict values = partial[0];
    // What is checked and counted is what is stored: out can be narrower.
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<Sum>(static_cast<Out>(values[i] * scale));
    const std::int64_t nonfinite = statistics.nonfinite;
    collect(values, count, squares, statistics);
    // Before out is written, which may be one of the parts.
    if (statistics.nonfinite != nonfinite) [[unlikely]] {
      const std::size_t part =
          find_nonfinite_part<In>(tile, tile.first + begin, count);
      if (part < statistics.nonfinite_part) statistics.nonfinite_part = part;
    }
    Out* __restrict target = out + begin;
    for (std::int64_t i = 0; i < count; ++i)
      target[i] = static_cast<Out>(values[i]);
  }
  statistics.squares += total(squares);
}

template <class Step, class T, class Parameter>
void update(const UpdateTile& tile) {
  update_elements<Step::state_arrays, T, Parameter>(
      *static_cast<const Step*>(tile.step), tile);
}

template <class T, class Parameter>
void update_lamb(const UpdateTile& tile) {
  const auto& step = *static_cast<const LambStep<T>*>(tile.step);
  const T size = static_cast<T>(step.learning_rate * tile.trust_ratio);
  update_elements<LambStep<T>::state_arrays, T, Parameter>(
      LambMove<T>{step, size}, tile);
}

template <class T>
void trust(const UpdateTile& tile, TrustSums& sums) {
  alignas(64) double of_parameter[lanes] = {};
  alignas(64) double of_update[lanes] = {};
  alignas(64) T directions[chunk_size];
  const LambStep<T> step = *static_cast<const LambStep<T>*>(tile.step);
  const T factor = static_cast<T>(tile.gradient_factor);
  for (std::int64_t begin = 0; begin < tile.count; begin += chunk_size) {
    const std::int64_t left = tile.count - begin;
    const std::int64_t count = left < chunk_size ? left : chunk_size;
    const T* __restrict gradient = static_cast<const T*>(tile.gradient) + begin;
    const T* __restrict main = static_cast<const T*>(tile.main) + begin;
    T* __restrict state0 = static_cast<T*>(tile.state[0]) + begin;
    T* __restrict state1 = static_cast<T*>(tile.state[1]) + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      T s[2] = {state0[i], state1[i]};
      step.moments(gradient[i] * factor, s);
      state0[i] = s[0];
      state1[i] = s[1];
      directions[i] = step.direction(main[i], s);
    }
    add_squares(main, count, of_parameter);
    add_squares(directions, count, of_update);
  }
  sums.parameter += total(of_parameter);
  sums.update += total(of_update);
}

template <class In>
void widen(const void* source, float* out, std::int64_t count) {
  copy_chunk(static_cast<const In*>(source), out, count);
}

template <class Out>
void narrow(const float* source, void* out, std::int64_t count) {
  copy_chunk(source, static_cast<Out*>(out), count);
}

// By the codes of 16-bit types, so that a conversion need not be made.
template <template <class> class Step>
constexpr std::array<UpdateFunction, 4> update_row = {
    update<Step<float>, float, float16>, update<Step<float>, float, bfloat16>,
    update<Step<float>, float, float>, update<Step<double>, double, double>};

}  // namespace

// NOLINTNEXTLINE(misc-definitions-in-headers)
constinit const HostKernels KZERO_HOST_KERNELS = {
    KZERO_INSTRUCTION_SET_NAME,
    {{{sum<float16, float>, sum<float16, double>},
      {sum<bfloat16, float>, sum<bfloat16, double>},
      {sum<float, float>, sum<float, double>},
      {sum<double, float>, sum<double, double>}}},
    {update_row<AdamWStep>,
     update_row<AmsgradStep>,
     update_row<SgdStep>,
     update_row<MomentumStep>,
     update_row<AdamStep>,
     update_row<AdamAmsgradStep>,
     update_row<AdagradStep>,
     update_row<RmsPropPlainStep>,
     update_row<RmsPropMomentumStep>,
     update_row<RmsPropCenteredStep>,
     update_row<RmsPropCenteredMomentumStep>,
     update_row<LionStep>,
     {update_lamb<float, float16>, update_lamb<float, bfloat16>,
      update_lamb<float, float>, update_lamb<double, double>}},
    {trust<float>, trust<float>, trust<float>, trust<double>},
    {widen<float16>, widen<bfloat16>},
    {narrow<float16>, narrow<bfloat16>}};

}  // namespace kzero::detail
