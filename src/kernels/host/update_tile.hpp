// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The loop of a rule over a tile of any length: blocks of 16 elements alone,
// and what is left as one more block, since single elements cost as much as
// blocks. For host kernels alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/element_rule.hpp>
#include <type_traits>

#include "kernels/host/block_access.hpp"
#include "kernels/host/narrow_blocks.hpp"

namespace kzero::detail {
namespace {

/// Parameters are narrowed a chunk at a time, from the first cache.
constexpr std::int64_t narrowed_chunk = 512;

template <class T, class Parameter>
struct TileArrays {
  const T* gradient = nullptr;
  T* main = nullptr;
  Parameter* parameter = nullptr;
  T* state[maximum_state_arrays] = {};
};

template <class R, class T>
constexpr bool takes_gradient = !std::is_invocable_v<const R&, T&, T*>;

template <std::size_t arrays, class T, class Parameter, class R>
KZERO_FUNCTION void update_blocks(const R rule, T factor, std::int64_t blocks,
                                  const TileArrays<T, Parameter>& tile) {
  const std::int64_t count = blocks * lanes;
  if constexpr (has_narrow_blocks<Parameter>) {
    for (std::int64_t i = 0; i < count; i += narrowed_chunk) {
      const std::int64_t some =
          count - i < narrowed_chunk ? count - i : narrowed_chunk;
      update_arrays<arrays, T, T>(
          rule, factor, some / lanes * lanes, tile.gradient + i, tile.main + i,
          nullptr, tile.state[0] + i, tile.state[1] + i, tile.state[2] + i);
      narrow_blocks(tile.main + i, tile.parameter + i, some);
    }
  } else {
    update_arrays<arrays>(rule, factor, count, tile.gradient, tile.main,
                          tile.parameter, tile.state[0], tile.state[1],
                          tile.state[2]);
  }
}

/// What is left of an array, behind it its first element again: for numbers
/// that are not there the rule must not raise what others do not.
template <class T>
KZERO_FUNCTION void load_left(const T* from, int count, T* to) {
  store(load_repeated(from, count), to, lanes);
}

template <std::size_t arrays, class T, class Parameter, class R>
KZERO_FUNCTION void update_left(const R& rule, T factor, int count,
                                const TileArrays<T, Parameter>& tile) {
  alignas(64) T gradient[lanes];
  alignas(64) T main[lanes];
  alignas(64) Parameter parameter[lanes];
  alignas(64) T state[maximum_state_arrays][lanes];
  if constexpr (takes_gradient<R, T>) load_left(tile.gradient, count, gradient);
  load_left(tile.main, count, main);
  for (std::size_t i = 0; i < arrays; ++i)
    load_left(tile.state[i], count, state[i]);
  update_blocks<arrays, T, Parameter>(
      rule, factor, 1,
      {gradient, main, parameter, {state[0], state[1], state[2]}});
  store(load(main, lanes), tile.main, count);
  for (std::size_t i = 0; i < arrays; ++i)
    store(load(state[i], lanes), tile.state[i], count);
  if constexpr (is_16_bit<Parameter>)
    copy_codes(parameter, tile.parameter, count);
}

template <std::size_t arrays, class T, class Parameter, class R>
KZERO_FUNCTION void update_tile(const R& rule, const UpdateTile& tile) {
  TileArrays<T, Parameter> rest = {static_cast<const T*>(tile.gradient),
                                   static_cast<T*>(tile.main),
                                   static_cast<Parameter*>(tile.parameter)};
  for (std::size_t i = 0; i < arrays; ++i)
    rest.state[i] = static_cast<T*>(tile.state[i]);
  const T factor = static_cast<T>(tile.gradient_factor);
  const std::int64_t blocks = tile.count / lanes;
  if (blocks > 0) update_blocks<arrays>(rule, factor, blocks, rest);
  const std::int64_t done = blocks * lanes;
  if (done == tile.count) return;
  rest.gradient += done;
  rest.main += done;
  if constexpr (is_16_bit<Parameter>) rest.parameter += done;
  for (std::size_t i = 0; i < arrays; ++i) rest.state[i] += done;
  update_left<arrays>(rule, factor, static_cast<int>(tile.count - done), rest);
}

}  // namespace
}  // namespace kzero::detail
