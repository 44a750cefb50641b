// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <bit>
#include <functional>
#include <kzero/parameter_set.hpp>
#include <utility>

#include "core/message.hpp"
#include "layout/declaration_checks.hpp"
#include "layout/external_checks.hpp"

namespace kzero {

using detail::concat;
using detail::quoted;
using detail::refuse_parameter;

ParameterId ParameterSet::add(std::string name,
                              std::vector<std::int64_t> extents,
                              ParameterOptions options) {
  return declare(std::move(name), std::move(extents), std::move(options),
                 nullptr);
}

ParameterId ParameterSet::add_external(std::string name, ExternalArray value,
                                       const ExternalArray* gradient,
                                       ParameterOptions options) {
  require_name(name);
  auto external = std::make_shared<const ExternalStorage>(
      detail::checked_external(name, std::move(value), gradient, options));
  std::vector<std::int64_t> extents = external->value.extents;
  return declare(std::move(name), std::move(extents), std::move(options),
                 std::move(external));
}

std::vector<ParameterId> ParameterSet::append(
    const ParameterSet& others, const std::optional<std::string>& group) {
  // All or none: on a copy, since a later one may be refused.
  ParameterSet both = *this;
  std::vector<ParameterId> ids;
  for (const ParameterInfo& info : others.parameters_)
    ids.push_back(both.declare(info.name, info.extents,
                               {.dtype = info.dtype,
                                .gradient_dtype = info.gradient_dtype,
                                .group = group.value_or(info.group),
                                .chunk = info.chunk,
                                .model_parallel = info.model_parallel,
                                .tied_to = info.tied_to,
                                .unmarked = info.unmarked,
                                .frozen = info.frozen},
                               info.external));
  *this = std::move(both);
  return ids;
}

void ParameterSet::require_name(const std::string& name) const {
  if (name.empty())
    throw InvalidArgument(concat("parameter ", parameters_.size(),
                                 " has an empty name: give each parameter a "
                                 "name of its own"));
}

ParameterId ParameterSet::declare(
    std::string name, std::vector<std::int64_t> extents,
    ParameterOptions options, std::shared_ptr<const ExternalStorage> external) {
  require_name(name);
  const DType by_default =
      size_of(options.dtype) == 2 ? DType::float32 : options.dtype;
  const DType gradient_dtype = options.gradient_dtype.value_or(by_default);
  detail::check_dtypes(name, options.dtype, gradient_dtype);
  const std::int64_t size = detail::checked_size(name, extents, options.dtype);
  detail::check_options(name, options);

  // What can fail comes first, so that the set is unchanged if it does.
  reserve_one_more();
  const std::size_t hash = std::hash<std::string_view>{}(name);
  Slot& slot = slots_[find_slot(name, hash)];
  if (slot.index >= 0)
    refuse_parameter(
        name, concat("the name is taken (by parameter ", slot.index,
                     " of extents ", (*this)[ParameterId{slot.index}].extents,
                     "): give each parameter a name of its own"));
  const ParameterId id{this->size()};
  ParameterInfo info{.name = std::move(name),
                     .extents = std::move(extents),
                     .size = size,
                     .dtype = options.dtype,
                     .gradient_dtype = gradient_dtype,
                     .group = std::move(options.group),
                     .chunk = options.chunk,
                     .model_parallel = options.model_parallel,
                     .tied_to = std::move(options.tied_to),
                     .unmarked = options.unmarked,
                     .frozen = options.frozen,
                     .storage = id,
                     .external = std::move(external)};
  tie(info);
  claim_memory(info);
  parameters_.push_back(std::move(info));
  slot = {hash, id.index};
  return id;
}

void ParameterSet::tie(ParameterInfo& info) {
  if (tied_elsewhere_.contains(info.name)) {
    std::string_view tied;
    for (const ParameterInfo& each : parameters_)
      if (each.tied_to == info.name && tied.empty()) tied = each.name;
    refuse_parameter(info.name,
                     concat("declared after parameter ", quoted(tied),
                            ", which is tied to it: declare it first"));
  }
  if (info.tied_to.empty()) return;
  if (info.tied_to == info.name)
    refuse_parameter(info.name, "tied to itself: name the other parameter");
  const std::optional<ParameterId> target = find(info.tied_to);
  if (!target) {
    tied_elsewhere_.insert(info.tied_to);
    return;
  }
  detail::require_same(info, (*this)[*target]);
  info.storage = (*this)[*target].storage;
  if (info.external) detail::require_same_memory(info, (*this)[*target]);
  info.external = (*this)[*target].external;
}

void ParameterSet::claim_memory(const ParameterInfo& info) {
  if (!info.external || info.size == 0 || info.storage.index < size()) return;
  std::map<const void*, ParameterId> own;
  for (const ExternalArray* array :
       {&info.external->value, &info.external->gradient}) {
    if (array->data == nullptr) continue;  // frozen
    const auto other = claimed_.find(array->data);
    if (other != claimed_.end())
      refuse_parameter(
          info.name,
          concat(array == &info.external->value ? "the value" : "the gradient",
                 " lies in the memory of parameter ",
                 quoted((*this)[other->second].name),
                 ": give it memory of its own, or tie one to the other"));
    own.emplace(array->data, info.storage);
  }
  claimed_.merge(own);
}

const ParameterInfo& ParameterSet::operator[](ParameterId id) const {
  if (id.index < 0 || id.index >= size())
    throw InvalidArgument(concat(
        "no such parameter (expected an index below ", size(), ", got ",
        id.index, "): use a ParameterId that add() of this set returned"));
  return parameters_[static_cast<std::size_t>(id.index)];
}

std::optional<ParameterId> ParameterSet::find(std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const std::int64_t index =
      slots_[find_slot(name, std::hash<std::string_view>{}(name))].index;
  if (index < 0) return std::nullopt;
  return ParameterId{index};
}

std::size_t ParameterSet::find_slot(std::string_view name,
                                    std::size_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t place = hash & mask;
  for (; slots_[place].index >= 0; place = (place + 1) & mask) {
    if (slots_[place].hash != hash) continue;
    const auto index = static_cast<std::size_t>(slots_[place].index);
    if (parameters_[index].name == name) break;
  }
  return place;
}

void ParameterSet::reserve_one_more() {
  const std::size_t count = parameters_.size() + 1;
  if (count > parameters_.capacity()) parameters_.reserve(2 * count);
  if (2 * count <= slots_.size()) return;
  std::vector<Slot> slots(std::bit_ceil(4 * count));
  const std::size_t mask = slots.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.index < 0) continue;
    std::size_t place = slot.hash & mask;
    while (slots[place].index >= 0) place = (place + 1) & mask;
    slots[place] = slot;
  }
  slots_ = std::move(slots);
}

}  // namespace kzero
