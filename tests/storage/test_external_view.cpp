// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Kokkos views as memory of parameters.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <kzero/external_view.hpp>

namespace kzero::test {
namespace {

using Numbers = std::vector<std::int64_t>;
using Left = Kokkos::LayoutLeft;
using Right = Kokkos::LayoutRight;

template <class View>
ExternalArray external(const View& view) {
  return detail::ExternalOf<View>::make(view);
}

/// Every element is where the view has it.
template <class View>
void expect_layout(const View& view, const Numbers& extents,
                   const Numbers& strides) {
  const ExternalArray array = external(view);
  EXPECT_EQ(array.data, view.data());
  EXPECT_EQ(array.dtype, dtype_of<typename View::non_const_value_type>);
  EXPECT_EQ(array.extents, extents);
  EXPECT_EQ(array.strides, strides);
}

static_assert(KokkosView<Kokkos::View<double**, Left>>);
static_assert(KokkosView<Kokkos::View<const float>>);
static_assert(OwnMemory<ExternalArray>);
static_assert(!OwnMemory<Numbers>);
static_assert(!OwnMemory<ParameterOptions>);

TEST(ExternalView, OfEveryLayout) {
  expect_layout(Kokkos::View<double**, Left>("v", 5, 3), {5, 3}, {1, 5});
  expect_layout(Kokkos::View<double**, Right>("v", 5, 3), {5, 3}, {3, 1});
  expect_layout(Kokkos::View<float[2][3][4], Right>("v"), {2, 3, 4},
                {12, 4, 1});
  expect_layout(Kokkos::View<float**, Kokkos::LayoutStride>(
                    "v", Kokkos::LayoutStride(4, 2, 3, 9)),
                {4, 3}, {2, 9});
  const Kokkos::View<float***, Left> cube("v", 4, 5, 6);
  expect_layout(Kokkos::subview(cube, 1, Kokkos::ALL, Kokkos::ALL), {5, 6},
                {4, 20});
  expect_layout(Kokkos::subview(cube, std::make_pair(1, 3), 2, Kokkos::ALL),
                {2, 6}, {1, 20});
  const Kokkos::View<float***, Right> box("v", 4, 5, 6);
  expect_layout(Kokkos::subview(box, Kokkos::ALL, Kokkos::ALL, 2), {4, 5},
                {30, 6});
}

TEST(ExternalView, OfEveryRankAndType) {
  expect_layout(Kokkos::View<float>("v"), {}, {});
  expect_layout(Kokkos::View<float16*>("v", 7), {7}, {1});
  expect_layout(Kokkos::View<bfloat16*>("v", 7), {7}, {1});
  expect_layout(Kokkos::View<float********, Right>("v", 2, 1, 3, 1, 2, 1, 1, 2),
                {2, 1, 3, 1, 2, 1, 1, 2}, {12, 12, 4, 4, 2, 2, 2, 1});
  expect_layout(Kokkos::View<float********, Left>("v", 2, 1, 3, 1, 2, 1, 1, 2),
                {2, 1, 3, 1, 2, 1, 1, 2}, {1, 2, 2, 6, 6, 12, 12, 12});
  EXPECT_EQ(external(Kokkos::View<float**>()).size(), 0);
  EXPECT_EQ(external(Kokkos::View<float**, Right>("v", 5, 0)).size(), 0);
}

TEST(ExternalView, KeepsManagedViewsAlive) {
  Kokkos::View<float*> view("v", 3);
  EXPECT_EQ(view.use_count(), 1);
  ExternalArray array = external(view);
  EXPECT_EQ(view.use_count(), 2);
  const ExternalArray copy = array;
  array = {};
  EXPECT_EQ(view.use_count(), 2);
  using Unmanaged =
      Kokkos::View<float*, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  EXPECT_EQ(external(Unmanaged(view)).owner, nullptr);
  EXPECT_EQ(view.use_count(), 2);
}

TEST(ExternalView, GoesIntoAParameterSet) {
  Kokkos::View<bfloat16**, Left> w("w", 4, 3);
  Kokkos::View<float**, Right> g("g", 4, 3);
  ParameterSet set;
  const auto a = set.add("a", w, g);
  const Kokkos::View<double*> f("f", 5);
  const auto b = set.add("b", f, {.frozen = true});
  float own[12] = {};
  const Kokkos::View<float**, Left> v("v", 4, 3);
  const auto c = set.add("c", v, ExternalArray{.data = own, .extents = {4, 3}},
                         {.group = "other"});
  EXPECT_EQ(set[a].dtype, DType::bfloat16);
  EXPECT_EQ(set[a].gradient_dtype, DType::float32);
  EXPECT_EQ(set[a].extents, (Numbers{4, 3}));
  EXPECT_EQ(set[a].external->value.data, w.data());
  EXPECT_EQ(set[a].external->gradient.data, g.data());
  EXPECT_EQ(set[b].external->gradient.data, nullptr);
  EXPECT_EQ(set[c].external->gradient.data, own);
  // Empty and zero extents are no memory.
  EXPECT_EQ(set[set.add("plain", {})].external, nullptr);
  EXPECT_EQ(set[set.add("none", {0})].external, nullptr);
  EXPECT_EQ(set[set.add("two", {0, 2}, {.frozen = true})].external, nullptr);
  EXPECT_THROW(set.add("d", w), InvalidArgument);
  EXPECT_THROW(set.add("d", Kokkos::View<float>(), Kokkos::View<float>()),
               InvalidArgument);
}

}  // namespace
}  // namespace kzero::test
