// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Update rules of your own, one matrix at a time.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <kzero/own_rule.hpp>
#include <span>
#include <string_view>
#include <type_traits>

namespace kzero {

/// What a MatrixRule is called with: a whole matrix of rows * columns elements,
/// both at least 1, in C order without gaps. The arrays do not overlap.
template <class T>
struct MatrixUpdate {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  /// Updates of this parameter, this one included.
  std::int64_t t = 0;
  /// Averaged over the ranks, unscaled and clipped.
  std::span<const T> gradient;
  /// The main parameter, to be changed.
  std::span<T> parameter;
  /// One for each name in the rule's `state`, zero before the first update;
  /// those past the names are empty.
  std::array<std::span<T>, detail::maximum_state_arrays> state;
  /// As many elements as the rule's work_elements(rows, columns) says, with
  /// whatever was left in them.
  std::span<T> work;
};

/// An update rule that sees a parameter of two extents as the matrix that it
/// is, written as a struct:
///
///   struct RowNormalized {
///     static constexpr std::string_view name = "row_normalized";
///     static constexpr std::array<std::string_view, 1> state = {"momentum"};
///     double learning_rate = 1e-3;
///     double momentum = 0.9;
///     static constexpr kzero::Hyperparameter<RowNormalized>
///         hyperparameters[] = {
///             {"learning_rate", &RowNormalized::learning_rate},
///             {"momentum", &RowNormalized::momentum}};
///
///     static std::int64_t work_elements(std::int64_t rows, std::int64_t) {
///       return rows;
///     }
///
///     template <class T>
///     void operator()(const kzero::MatrixUpdate<T>& matrix) const;
///   };
///
///   options.rule = RowNormalized{.learning_rate = 0.01};
///   options.plan.partition = kzero::Partition::parameters;
///
/// A matrix is a parameter of exactly two extents. What is none takes the rule
/// that is given beside it: see Rule. On more than one rank the plan's
/// partition must be one in which every parameter lies whole on one rank.
///
/// operator() is called once a step for each matrix that this rank owns, one
/// after another, for T float, of float64 parameters double. It must be a
/// function of its argument and of *this alone, but not of the content of
/// `work`, and must not throw. It may run on a thread that is neither the
/// caller's nor one of Kokkos's, so it calls no Kokkos. A matrix without
/// elements is never given to it.
///
/// Three functions can be added:
///
///   static std::int64_t work_elements(std::int64_t rows, std::int64_t
///   columns); void check() const;                       // throws
///   InvalidArgument RowNormalized prepared(std::int64_t t) const;  // for the
///   t-th update
///
/// Without work_elements() there is no work memory. It is allocated once, for
/// the largest matrix that this rank owns (Memory::work). The other two, the
/// names, the hyperparameters and the struct's size are as in ElementRule.
///
/// Denormal numbers are taken for zero.
template <class R>
concept MatrixRule = std::is_class_v<R> &&
    requires(const R& rule, const MatrixUpdate<float>& f,
             const MatrixUpdate<double>& d) {
  { R::name } -> std::convertible_to<std::string_view>;
  std::span<const std::string_view>(R::state);
  std::span<const Hyperparameter<R>>(R::hyperparameters);
  rule(f);
  rule(d);
};

namespace detail {

/// A whole matrix, without its type.
struct MatrixTask {
  const void* step = nullptr;  // the rule's prepared step
  double gradient_factor = 1.0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t t = 0;
  const void* gradient = nullptr;
  void* main = nullptr;
  void* state[maximum_state_arrays] = {};
  void* work = nullptr;
};

template <class R>
std::int64_t own_work_elements(std::int64_t rows, std::int64_t columns) {
  if constexpr (requires { R::work_elements(rows, columns); })
    return R::work_elements(rows, columns);
  else
    return 0;
}

/// A gradient that has a factor lies scaled behind the rule's own work memory.
template <class R, class T>
void update_own_matrix(const MatrixTask& task) {
  const auto size = static_cast<std::size_t>(task.rows * task.columns);
  const auto own =
      static_cast<std::size_t>(own_work_elements<R>(task.rows, task.columns));
  T* const work = static_cast<T*>(task.work);
  const T* gradient = static_cast<const T*>(task.gradient);
  if (task.gradient_factor != 1.0) {
    const T factor = static_cast<T>(task.gradient_factor);
    T* const scaled = work + own;
    for (std::size_t i = 0; i < size; ++i) scaled[i] = gradient[i] * factor;
    gradient = scaled;
  }
  MatrixUpdate<T> matrix;
  matrix.rows = task.rows;
  matrix.columns = task.columns;
  matrix.t = task.t;
  matrix.gradient = {gradient, size};
  matrix.parameter = {static_cast<T*>(task.main), size};
  for (std::size_t i = 0; i < std::size(R::state); ++i)
    matrix.state[i] = {static_cast<T*>(task.state[i]), size};
  matrix.work = {work, own};
  const R rule = *static_cast<const R*>(task.step);
  rule(static_cast<const MatrixUpdate<T>&>(matrix));
}

template <MatrixRule R>
constexpr OwnRuleTable make_matrix_rule_table() {
  static_assert(
      !requires(const R& rule, std::int64_t n) { rule.work_elements(n, n); } ||
          requires(std::int64_t n) {
            { R::work_elements(n, n) } -> std::convertible_to<std::int64_t>;
          },
      "a MatrixRule's work_elements(rows, columns) must be static and return a "
      "number: hyperparameters can change, the memory cannot");
  OwnRuleTable table = make_own_rule_table<R>();
  table.update_matrix = {update_own_matrix<R, float>,
                         update_own_matrix<R, double>};
  table.work_elements = [](std::int64_t rows, std::int64_t columns,
                           bool scaled) {
    return own_work_elements<R>(rows, columns) + (scaled ? rows * columns : 0);
  };
  return table;
}

template <MatrixRule R>
inline constexpr OwnRuleTable matrix_rule_table = make_matrix_rule_table<R>();

}  // namespace detail

}  // namespace kzero
