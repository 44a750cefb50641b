// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Kokkos views of the caller's own as parameters and gradients: what
// ParameterSet::add needs to take them.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/external_array.hpp>
#include <kzero/parameter_set.hpp>
#include <kzero/parameter_view.hpp>
#include <memory>
#include <type_traits>

namespace kzero::detail {

/// Keeps a pointer reachable, so that leak checkers do not take what is never
/// freed for a mistake.
void keep_forever(const void* object) noexcept;

/// Kokkos aborts when a view is freed after Kokkos::finalize(): such a view is
/// kept for good.
template <class View>
void free_view(const View* view) noexcept {
  if (Kokkos::is_initialized())
    delete view;
  else
    keep_forever(view);
}

template <class DataType, class... Properties>
struct ExternalOf<Kokkos::View<DataType, Properties...>> {
  using View = Kokkos::View<DataType, Properties...>;
  using Value = typename View::non_const_value_type;
  using Layout = typename View::array_layout;
  static constexpr auto rank = static_cast<std::size_t>(View::rank);

  static_assert(!std::is_const_v<typename View::value_type>,
                "a parameter and its gradient are written by the optimizer: "
                "give views of elements that are not const");
  static_assert(Element<Value>,
                "a parameter and its gradient are views of float, double, "
                "kzero::float16 or kzero::bfloat16");
  static_assert(std::is_same_v<Layout, Kokkos::LayoutRight> ||
                    std::is_same_v<Layout, Kokkos::LayoutLeft> ||
                    std::is_same_v<Layout, Kokkos::LayoutStride>,
                "a parameter and its gradient are views of LayoutRight, "
                "LayoutLeft or LayoutStride");
  static_assert(
      Kokkos::SpaceAccessibility<ExecutionSpace,
                                 typename View::memory_space>::accessible,
      "a parameter and its gradient lie in memory that "
      "Kokkos::DefaultExecutionSpace can access: give views of its memory "
      "space");

  static ExternalArray make(const View& view) {
    ExternalArray array;
    array.data = view.data();
    array.dtype = dtype_of<Value>;
    for (std::size_t d = 0; d < rank; ++d) {
      array.extents.push_back(static_cast<std::int64_t>(view.extent(d)));
      array.strides.push_back(static_cast<std::int64_t>(view.stride(d)));
    }
    if constexpr (!View::memory_traits::is_unmanaged)
      array.owner =
          std::shared_ptr<const View>(new View(view), free_view<View>);
    return array;
  }
};

}  // namespace kzero::detail
