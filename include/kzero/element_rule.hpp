// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Update rules of your own, one element at a time.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <kzero/dtype.hpp>
#include <kzero/macros.hpp>
#include <kzero/own_rule.hpp>
#include <span>
#include <string_view>
#include <type_traits>

namespace kzero {

/// An update rule that works on each element by itself, written as a struct:
///
///   struct Signum {
///     static constexpr std::string_view name = "signum";
///     static constexpr std::array<std::string_view, 1> state = {"momentum"};
///     double learning_rate = 1e-3;
///     double beta = 0.9;
///     static constexpr kzero::Hyperparameter<Signum> hyperparameters[] = {
///         {"learning_rate", &Signum::learning_rate},
///         {"beta", &Signum::beta}};
///
///     template <class T>
///     KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
///       s[0] = T(beta) * s[0] + T(1.0 - beta) * g;
///       p -= T(learning_rate) * (T(s[0] > T(0)) - T(s[0] < T(0)));
///     }
///   };
///
///   options.rule = Signum{.learning_rate = 0.01};
///
/// operator() is called for each element with the averaged gradient g, the main
/// parameter p and the element's state s, one value for each name in `state`
/// (at most 3), zero before the first update. T is float, for float64
/// parameters double. It must be a function of its arguments and of *this
/// alone: elements are updated in any order, by any thread.
///
/// Two functions can be added:
///
///   void check() const;                       // throws InvalidArgument
///   Signum prepared(std::int64_t t) const;    // a copy for the t-th update
///
/// check() replaces the default check, that all hyperparameters are finite.
/// prepared() is called on the host once a step for all parameters with the
/// same update count t, from 1; what depends on t (bias corrections) is
/// computed there in double and kept in further members. Members that are no
/// hyperparameters are neither compared between ranks nor saved.
///
/// Names are of letters, digits and underscores. The struct is trivially
/// copyable and has at most 128 bytes.
///
/// Speed: the loop is compiled where the struct is converted to a Rule. Compile
/// that file with -O3 -fno-math-errno -fno-trapping-math, which changes no
/// result: g++ 12 and clang++ 14 vectorise the loop for all types then (clang++
/// where it pays), if operator() chooses by `?:` and comparisons, not by
/// branches, and converts members as above, T(beta): that leaves the loop.
/// With -O3 alone square roots stay scalar, and with g++ float16 and conditions
/// inside conditions. -march chooses the instructions; only the library's own
/// rules are compiled for several and chosen at run time.
///
/// Bits: with -ffp-contract=off they are the same on every machine and for
/// every bucket size and number of threads; without it the compiler may fuse
/// multiplications and additions where the processor can. Denormal numbers are
/// taken for zero.
template <class R>
concept ElementRule = std::is_class_v<R> &&
    requires(const R& rule, float f, double d) {
  { R::name } -> std::convertible_to<std::string_view>;
  std::span<const std::string_view>(R::state);
  std::span<const Hyperparameter<R>>(R::hyperparameters);
  rule(f, f, &f);
  rule(d, d, &d);
};

namespace detail {

/// count elements, all of one parameter. parameter is the 16-bit parameter to
/// be written, null where the main parameter is the parameter.
struct UpdateTile {
  const void* step = nullptr;  // the rule's prepared step
  double gradient_factor = 1.0;
  double trust_ratio = 1.0;  // of rules that have one
  const void* gradient = nullptr;
  void* main = nullptr;
  void* parameter = nullptr;
  void* state[maximum_state_arrays] = {};
  std::int64_t count = 0;
};

template <class T>
inline constexpr bool is_16_bit = sizeof(T) == 2;

/// The loop over arrays that do not overlap. They are parameters, where g++
/// believes __restrict; for variables it compares all pairs at run time, and
/// gives up at six.
template <std::size_t arrays, class T, class Parameter, class R>
KZERO_FUNCTION void update_arrays(const R& rule, T factor, std::int64_t count,
                                  const T* __restrict gradient,
                                  T* __restrict main,
                                  Parameter* __restrict parameter,
                                  T* __restrict state0, T* __restrict state1,
                                  T* __restrict state2) {
  for (std::int64_t i = 0; i < count; ++i) {
    T s[maximum_state_arrays] = {};
    if constexpr (arrays > 0) s[0] = state0[i];
    if constexpr (arrays > 1) s[1] = state1[i];
    if constexpr (arrays > 2) s[2] = state2[i];
    T p = main[i];
    if constexpr (std::is_invocable_v<const R&, T&, T*>)
      rule(p, s);
    else
      rule(gradient[i] * factor, p, s);
    main[i] = p;
    if constexpr (arrays > 0) state0[i] = s[0];
    if constexpr (arrays > 1) state1[i] = s[1];
    if constexpr (arrays > 2) state2[i] = s[2];
    if constexpr (is_16_bit<Parameter>) parameter[i] = Parameter(p);
  }
}

/// The loop over a tile, for the library's rules and others: rule(g, p, s) for
/// each element, or rule(p, s) where the rule takes no gradient. Always
/// inlined, so that each instruction set has its own. The rule is a copy so
/// that nothing the loop writes can change it.
template <std::size_t arrays, class T, class Parameter, class R>
KZERO_FUNCTION void update_elements(const R rule, const UpdateTile& tile) {
  update_arrays<arrays>(
      rule, static_cast<T>(tile.gradient_factor), tile.count,
      static_cast<const T*>(tile.gradient), static_cast<T*>(tile.main),
      static_cast<Parameter*>(tile.parameter), static_cast<T*>(tile.state[0]),
      static_cast<T*>(tile.state[1]), static_cast<T*>(tile.state[2]));
}

template <class R, class T, class Parameter>
void update_own(const UpdateTile& tile) {
  update_elements<std::size(R::state), T, Parameter>(
      *static_cast<const R*>(tile.step), tile);
}

template <ElementRule R>
constexpr OwnRuleTable make_element_rule_table() {
  OwnRuleTable table = make_own_rule_table<R>();
  table.update = {update_own<R, float, float16>, update_own<R, float, bfloat16>,
                  update_own<R, float, float>, update_own<R, double, double>};
  return table;
}

template <ElementRule R>
inline constexpr OwnRuleTable element_rule_table = make_element_rule_table<R>();

}  // namespace detail

}  // namespace kzero
