// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/state_arrays.hpp"

#include <algorithm>
#include <cstring>
#include <kzero/error.hpp>
#include <limits>
#include <new>
#include <optional>
#include <unordered_set>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

/// Elements of an array; none where that is no number.
std::optional<std::int64_t> size_of_shape(
    std::span<const std::int64_t> extents) {
  std::int64_t size = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    if (extent > 0 && size > std::numeric_limits<std::int64_t>::max() / extent)
      return std::nullopt;
    size *= extent;
  }
  return size;
}

std::int64_t bytes_of(const FileLayout& layout) {
  std::int64_t bytes = 0;
  for (const ParameterLayout& parameter : layout.parameters)
    for (const ArrayLayout& array : parameter.arrays)
      bytes +=
          size_of_shape(parameter.extents).value_or(0) * size_of(array.dtype);
  return bytes;
}

ParameterState state_of(const ParameterLayout& layout) {
  ParameterState parameter{
      layout.name, layout.group, layout.extents, layout.update_count, {}};
  const std::int64_t size = size_of_shape(layout.extents).value_or(0);
  for (const ArrayLayout& array : layout.arrays)
    parameter.arrays.push_back({array.name, array.dtype,
                                std::vector<std::byte>(static_cast<std::size_t>(
                                    size * size_of(array.dtype)))});
  return parameter;
}

[[noreturn]] void refuse(std::string_view problem) {
  throw InvalidArgument(concat("the state is damaged (", problem,
                               "): give one that consolidate() has made"));
}

void check_array(const ParameterState& parameter, const StateArray& array) {
  const auto where = [&] {
    return concat("array ", detail::quoted(array.name), " of parameter ",
                  detail::quoted(parameter.name));
  };
  if (array.dtype > DType::float64)
    refuse(concat(where(), " has an unknown number type, expected a code from ",
                  "0 to 3, got ", static_cast<int>(array.dtype)));
  const std::optional<std::int64_t> size = size_of_shape(parameter.extents);
  if (!size.has_value())
    refuse(concat("parameter ", detail::quoted(parameter.name),
                  " has the shape ", std::span(parameter.extents)));
  const auto got = static_cast<std::int64_t>(array.bytes.size());
  const std::int64_t width = size_of(array.dtype);
  if (got % width != 0 || got / width != *size)
    refuse(concat(where(), " has ", counted(got, "byte"), ", expected ", *size,
                  " elements of ", width, " by its shape ",
                  std::span(parameter.extents)));
}

/// Calls add(each) for all, unless two have one name.
template <class T, class F>
void for_each_once(const std::vector<T>& all, std::string_view what, F&& add) {
  std::unordered_set<std::string_view> names;
  for (const T& each : all) {
    if (!names.insert(each.name).second)
      refuse(concat(what, ' ', detail::quoted(each.name), " stands twice"));
    add(each);
  }
}

ParameterLayout layout_of(const ParameterState& parameter) {
  ParameterLayout layout{parameter.name,
                         parameter.group,
                         parameter.update_count,
                         parameter.extents,
                         {},
                         {}};
  for_each_once(
      parameter.arrays,
      concat("in parameter ", detail::quoted(parameter.name), ", the array"),
      [&](const StateArray& array) {
        check_array(parameter, array);
        layout.arrays.push_back({array.name, array.dtype});
      });
  const auto value =
      std::ranges::find(layout.arrays, "value", &ArrayLayout::name);
  if (value == layout.arrays.end())
    refuse(concat("parameter ", detail::quoted(parameter.name),
                  " has no array \"value\""));
  std::rotate(layout.arrays.begin(), value, value + 1);
  return layout;
}

GroupLayout layout_of(const GroupState& group) {
  return {group.name,
          group.rule,
          {group.hyperparameters.begin(), group.hyperparameters.end()}};
}

template <class State, class Map>
void add_names(State& state, Map& map) {
  for (auto& parameter : state.parameters)
    map.emplace(parameter.name, &parameter);
}

}  // namespace

OptimizerState state_of(const FileLayout& layout, const Scaler& scaler) {
  try {
    OptimizerState state;
    state.steps = layout.content.step;
    state.skipped_total = layout.skipped_total;
    state.skipped_in_a_row = layout.skipped_in_a_row;
    state.scaler.scaler = scaler;
    if (layout.scaler) {
      state.scaler.scale = layout.scaler->state.scale;
      state.scaler.good_steps = layout.scaler->state.good_steps;
      state.scaler.hysteresis_left = layout.scaler->state.hysteresis_left;
    }
    for (const GroupLayout& group : layout.groups)
      state.groups.push_back(
          {group.name,
           group.rule,
           {group.hyperparameters.begin(), group.hyperparameters.end()}});
    for (const ParameterLayout& parameter : layout.parameters)
      state.parameters.push_back(state_of(parameter));
    return state;
  } catch (const std::bad_alloc&) {
    throw Error(concat("no memory for a state of ", bytes(bytes_of(layout)),
                       ": give a root with more memory, or save a checkpoint"));
  }
}

FileLayout layout_of(const OptimizerState& state) {
  FileLayout layout;
  layout.content.step = state.steps;
  layout.skipped_total = state.skipped_total;
  layout.skipped_in_a_row = state.skipped_in_a_row;
  const ScalerState& scaler = state.scaler;
  layout.scaler =
      ScalerLayout{std::string(kind_name(scaler.scaler.kind())),
                   {scaler.scale, scaler.good_steps, scaler.hysteresis_left}};
  if (scaler.scaler.kind() == Scaler::Kind::dynamic)
    layout.scaler->scaling = scaler.scaler.scaling();
  for_each_once(state.groups, "the group", [&](const GroupState& group) {
    layout.groups.push_back(layout_of(group));
  });
  for_each_once(state.parameters, "the parameter",
                [&](const ParameterState& parameter) {
                  layout.parameters.push_back(layout_of(parameter));
                });
  return layout;
}

StateSink::StateSink(OptimizerState& state) { add_names(state, parameters_); }

void StateSink::write(const ParameterLayout& parameter,
                      const ArrayLayout& array, const void* data) {
  std::vector<StateArray>& arrays = parameters_.at(parameter.name)->arrays;
  StateArray& to = *std::ranges::find(arrays, array.name, &StateArray::name);
  if (!to.bytes.empty()) std::memcpy(to.bytes.data(), data, to.bytes.size());
}

StateSource::StateSource(const OptimizerState& state) {
  add_names(state, parameters_);
}

const StateArray& StateSource::find(const ParameterLayout& parameter,
                                    const ArrayLayout& array) const {
  return *parameters_.at(parameter.name)->find(array.name);
}

void StateSource::read_pieces(
    const ParameterLayout& parameter, const ArrayLayout& array,
    const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
    const {
  f(0, find(parameter, array).bytes);
}

void StateSource::read(const ParameterLayout& parameter,
                       const ArrayLayout& array, void* data) const {
  const StateArray& from = find(parameter, array);
  if (!from.bytes.empty())
    std::memcpy(data, from.bytes.data(), from.bytes.size());
}

}  // namespace kzero::detail
