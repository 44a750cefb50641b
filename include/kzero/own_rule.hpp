// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What update rules of your own have in common: ElementRule and MatrixRule.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>

namespace kzero {

/// A hyperparameter of an ElementRule or a MatrixRule: its name and the member
/// that holds it.
template <class R>
struct Hyperparameter {
  std::string_view name;
  double R::*member;
};

namespace detail {

inline constexpr std::size_t maximum_state_arrays = 3;
inline constexpr std::size_t maximum_rule_bytes = 128;
inline constexpr std::size_t maximum_rule_alignment = 16;

struct UpdateTile;  // element_rule.hpp
struct MatrixTask;  // matrix_rule.hpp
using UpdateFunction = void (*)(const UpdateTile&);
using MatrixFunction = void (*)(const MatrixTask&);

constexpr bool is_identifier(std::string_view name) {
  for (const char c : name) {
    const bool valid = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '_';
    if (!valid) return false;
  }
  return !name.empty();
}

/// Identifiers, all different, none of those taken.
constexpr bool are_valid_names(std::span<const std::string_view> names,
                               std::initializer_list<std::string_view> taken) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_identifier(names[i])) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (names[i] == names[j]) return false;
    for (const std::string_view other : taken)
      if (names[i] == other) return false;
  }
  return true;
}

/// The type of a rule of somebody's own, without the type. It updates elements
/// or matrices.
struct OwnRuleTable {
  std::string_view name;
  std::span<const std::string_view> state;
  std::span<const std::string_view> hyperparameters;
  double (*get)(const void* rule, std::size_t hyperparameter);
  void (*set)(void* rule, std::size_t hyperparameter, double value);
  void (*check)(const void* rule);              // null without one
  void (*prepare)(void* rule, std::int64_t t);  // null without one
  std::array<UpdateFunction, 4> update;         // by the parameters' type
  /// By the main parameters' type: float, double. Null in an ElementRule, like
  /// the next one.
  std::array<MatrixFunction, 2> update_matrix;
  /// Elements of work memory for a matrix; the gradient may have to be scaled.
  std::int64_t (*work_elements)(std::int64_t rows, std::int64_t columns,
                                bool scaled);
};

template <class R>
inline constexpr auto hyperparameter_names = [] {
  std::array<std::string_view, std::size(R::hyperparameters)> names;
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = std::data(R::hyperparameters)[i].name;
  return names;
}();

/// All but the functions that update.
template <class R>
constexpr OwnRuleTable make_own_rule_table() {
  static_assert(
      std::is_trivially_copyable_v<R>,
      "a rule of your own must be trivially copyable: it holds numbers, "
      "no memory of its own");
  static_assert(
      sizeof(R) <= maximum_rule_bytes && alignof(R) <= maximum_rule_alignment,
      "a rule of your own must have at most 128 bytes and an alignment "
      "of at most 16");
  static_assert(is_identifier(R::name),
                "a rule's name must be of letters, digits and "
                "underscores");
  static_assert(std::size(R::state) <= maximum_state_arrays,
                "a rule of your own must have at most 3 state arrays");
  static_assert(are_valid_names(R::state, {"value", "main"}),
                "a rule's state arrays must have different names of "
                "letters, digits and underscores, none of them \"value\" or "
                "\"main\"");
  static_assert(are_valid_names(hyperparameter_names<R>, {"name", "rule"}),
                "a rule's hyperparameters must have different names "
                "of letters, digits and underscores, none of them \"name\" or "
                "\"rule\"");
  static_assert(
      !requires(R & rule) { rule.check(); } ||
          requires(const R& rule) { rule.check(); },
      "a rule's check() must be const");
  static_assert(
      !requires(R & rule, std::int64_t t) { rule.prepared(t); } ||
          requires(const R& rule, std::int64_t t) {
            { rule.prepared(t) } -> std::same_as<R>;
          },
      "a rule's prepared(t) must be const and return the rule by "
      "value");
  OwnRuleTable table = {};
  table.name = R::name;
  table.state = R::state;
  table.hyperparameters = hyperparameter_names<R>;
  table.get = [](const void* rule, std::size_t i) {
    return static_cast<const R*>(rule)
               ->*std::data(R::hyperparameters)[i]
               .member;
  };
  table.set = [](void* rule, std::size_t i, double value) {
    static_cast<R*>(rule)->*std::data(R::hyperparameters)[i].member = value;
  };
  if constexpr (requires(const R& rule) { rule.check(); })
    table.check = [](const void* rule) {
      static_cast<const R*>(rule)->check();
    };
  if constexpr (requires(const R& rule, std::int64_t t) {
                  { rule.prepared(t) } -> std::same_as<R>;
                })
    table.prepare = [](void* rule, std::int64_t t) {
      R& value = *static_cast<R*>(rule);
      value = static_cast<const R&>(value).prepared(t);
    };
  return table;
}

/// Any of them.
struct OwnRule {
  const OwnRuleTable* table = nullptr;
  alignas(maximum_rule_alignment) std::byte value[maximum_rule_bytes] = {};
};

}  // namespace detail

}  // namespace kzero
