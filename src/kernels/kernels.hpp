// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The host kernels: plain loops over a tile, one set of functions for each
// instruction set, chosen at run time. They know no Kokkos, allocate nothing
// and may be called from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <kzero/contribution.hpp>
#include <kzero/element_rule.hpp>
#include <limits>
#include <span>
#include <string_view>

namespace kzero::detail {

/// Elements [first, first + count) of every part are added up by the ordered
/// sum, multiplied by scale and written to out, which may be one of the parts.
/// Sums are taken in float32, of float64 parts in float64.
struct SumTile {
  const Contribution* parts = nullptr;
  std::size_t part_count = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  double scale = 1.0;
  void* out = nullptr;
  /// Before what is not finite: parts are as they were from there on.
  bool stops = false;
};

/// Of the averaged gradient; a kernel adds to what is there. The squares are
/// added in double in one fixed order, whatever the instruction set.
struct TileStatistics {
  double squares = 0.0;
  std::int64_t zeros = 0;
  std::int64_t nonfinite = 0;
  /// Where there are such: the first part of one rank that was not finite
  /// itself.
  static constexpr std::size_t no_part =
      std::numeric_limits<std::size_t>::max();
  std::size_t nonfinite_part = no_part;
  /// Whether a part of several ranks before it was not.
  bool nonfinite_block = false;
};

/// Of a tile of a parameter whose rule has a trust ratio: the squares of the
/// parameter and of the update's direction. A kernel adds to what is there, in
/// the order of TileStatistics::squares.
struct TrustSums {
  double parameter = 0.0;
  double update = 0.0;
};

/// A kernel for each step of kernels/arithmetic.hpp.
enum class UpdateKernel {
  adamw,
  amsgrad,
  sgd,
  momentum,
  adam,
  adam_amsgrad,
  adagrad,
  rmsprop,
  rmsprop_momentum,
  rmsprop_centered,
  rmsprop_centered_momentum,
  lion,
  lamb
};
inline constexpr std::size_t update_kernels = 13;

/// Returns how many elements are done: all, where it does not stop.
using SumFunction = std::int64_t (*)(const SumTile&, TileStatistics&);
/// The first of two passes of a rule with a trust ratio: it updates the state
/// and adds to the sums. The second is an UpdateFunction with
/// UpdateTile::trust_ratio; it reads no gradient.
using TrustFunction = void (*)(const UpdateTile&, TrustSums&);
using WidenFunction = void (*)(const void* source, float* out,
                               std::int64_t count);
using NarrowFunction = void (*)(const float* source, void* out,
                                std::int64_t count);

/// The sum, modulo 2^64, of each 32-bit little-endian word times the key whose
/// halves are low and high. Words lie anywhere.
using WordSumFunction = std::uint64_t (*)(const std::byte* words,
                                          const std::uint32_t* low,
                                          const std::uint32_t* high,
                                          std::int64_t count);

struct HostKernels {
  std::string_view name;
  /// By the gradients' type, and whether out is float64 (1) or float32 (0).
  std::array<std::array<SumFunction, 2>, 4> sum;
  /// By rule and by the parameters' type.
  std::array<std::array<UpdateFunction, 4>, update_kernels> update;
  /// Of UpdateKernel::lamb, by the parameters' type.
  std::array<TrustFunction, 4> trust;
  /// 16-bit parameters to float32, by type.
  std::array<WidenFunction, 2> widen;
  /// And back, as the conversions of float16 and bfloat16 round.
  std::array<NarrowFunction, 2> narrow;
  WordSumFunction word_sum;
};

/// The set in use: the widest that this processor has, or what the environment
/// variable KZERO_INSTRUCTION_SET names. Throws InvalidArgument for a name
/// that is not one of instruction_sets().
const HostKernels& host_kernels();

/// Names of the sets that were built and that this processor has.
std::span<const std::string_view> instruction_sets();

/// Changes the set in use, for tests. Throws as host_kernels() does.
void use_instruction_set(std::string_view name);

/// Name of the set in use.
std::string_view instruction_set_name();

/// The ordered sum without scale, as communicators want it.
void ordered_sum(std::span<const Contribution> parts, DType dtype,
                 std::int64_t count, void* out);

}  // namespace kzero::detail
