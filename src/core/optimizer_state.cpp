// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <kzero/error.hpp>
#include <kzero/optimizer_state.hpp>

#include "core/message.hpp"

namespace kzero {

namespace {

template <class T>
const T* find_name(const std::vector<T>& all, std::string_view name) {
  const auto place = std::ranges::find(all, name, &T::name);
  return place == all.end() ? nullptr : &*place;
}

}  // namespace

const StateArray* ParameterState::find(std::string_view array) const {
  return find_name(arrays, array);
}

const StateArray& ParameterState::typed(std::string_view array,
                                        DType asked) const {
  using detail::concat;
  const StateArray* const found = find(array);
  if (found == nullptr)
    throw InvalidArgument(concat(
        "the state of parameter ", detail::quoted(name), " has no array ",
        detail::quoted(array), ": ask for one of its arrays"));
  if (found->dtype != asked)
    throw InvalidArgument(concat("the array ", detail::quoted(array),
                                 " of parameter ", detail::quoted(name), " is ",
                                 found->dtype, ", but a span of ", asked,
                                 " was asked for: name its own type"));
  return *found;
}

const ParameterState* OptimizerState::find(std::string_view parameter) const {
  return find_name(parameters, parameter);
}

const ParameterState& OptimizerState::parameter(std::string_view name) const {
  if (const ParameterState* found = find(name)) return *found;
  throw InvalidArgument(detail::concat(
      "the state has no parameter ", detail::quoted(name),
      ": ask for one of its parameters (a tied one has no entry of its own)"));
}

const GroupState& OptimizerState::group(std::string_view name) const {
  if (const GroupState* found = find_name(groups, name)) return *found;
  throw InvalidArgument(detail::concat("the state has no group ",
                                       detail::quoted(name),
                                       ": ask for one of its groups"));
}

}  // namespace kzero
