// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The views in which callers see parameters and gradients.
#pragma once

#include <Kokkos_Core.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace kzero {

using ExecutionSpace = Kokkos::DefaultExecutionSpace;

/// D: the element type with one * or [n] an extent, const or not.
template <class D>
using ParameterView =
    Kokkos::View<D, Kokkos::LayoutRight, typename ExecutionSpace::memory_space,
                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

namespace detail {

class OptimizerCore;
struct OptimizerAccess;

/// Lets what is under way end by itself.
struct EndOfCore {
  void operator()(OptimizerCore* core) const noexcept;
};

/// Checked for the type already; make_view checks rank and static extents.
struct ViewReference {
  void* data = nullptr;
  std::span<const std::int64_t> extents;
  std::int64_t size = 0;
  std::string_view name;
};

[[noreturn]] void throw_view_rank(const ViewReference&, std::size_t rank);
[[noreturn]] void throw_view_extent(const ViewReference&, std::size_t dimension,
                                    std::size_t real, std::size_t asked);

template <class D>
ParameterView<D> make_view(const ViewReference& reference) {
  using View = ParameterView<D>;
  constexpr std::size_t rank = static_cast<std::size_t>(View::rank);
  static_assert(rank <= 8);
  Kokkos::LayoutRight layout;
  if (rank == 1 && reference.extents.size() != 1) {
    layout.dimension[0] = static_cast<std::size_t>(reference.size);
  } else {
    if (rank != reference.extents.size()) throw_view_rank(reference, rank);
    for (std::size_t i = 0; i < rank; ++i)
      layout.dimension[i] = static_cast<std::size_t>(reference.extents[i]);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const auto fixed = View::static_extent(static_cast<unsigned>(i));
    if (fixed != 0 && fixed != layout.dimension[i])
      throw_view_extent(reference, i, layout.dimension[i], fixed);
  }
  return View(static_cast<typename View::pointer_type>(reference.data), layout);
}

}  // namespace detail
}  // namespace kzero
