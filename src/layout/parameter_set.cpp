// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <bit>
#include <functional>
#include <kzero/parameter_set.hpp>
#include <utility>

#include "core/message.hpp"

namespace kzero {

namespace {

constexpr std::size_t maximum_extents = 8;
constexpr std::int64_t maximum_bytes = std::int64_t{1} << 62;

bool known(DType dtype) { return dtype <= DType::float64; }

[[noreturn]] void refuse(std::string_view name, std::string_view problem) {
  throw InvalidArgument(
      detail::concat("parameter ", detail::quoted(name), ": ", problem));
}

void check_dtypes(std::string_view name, DType dtype, DType gradient_dtype) {
  using detail::concat;
  for (const DType type : {dtype, gradient_dtype}) {
    if (!known(type))
      refuse(name, concat("unknown number type (expected a code from 0 to 3, "
                          "got ",
                          static_cast<int>(type), "): use a DType"));
  }
}

std::int64_t checked_size(std::string_view name,
                          std::span<const std::int64_t> extents, DType dtype) {
  using detail::concat;
  if (extents.size() > maximum_extents)
    refuse(name, concat("too many extents (expected at most ", maximum_extents,
                        ", got ", extents.size(), "): join some of them"));
  bool empty = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0)
      refuse(name, concat("negative extent (expected zero or more, got ",
                          extents, "): give the number of elements"));
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  const std::int64_t limit = maximum_bytes / size_of(dtype);
  std::int64_t size = 1;
  for (const std::int64_t extent : extents) {
    if (extent > limit / size)
      refuse(name, concat("too large (expected at most 2^62 bytes, got extents "
                          "",
                          extents, " of ", dtype,
                          "): check the extents or split the parameter"));
    size *= extent;
  }
  return size;
}

void check_options(std::string_view name, const ParameterOptions& options) {
  using detail::concat;
  if (options.group.empty())
    refuse(name,
           "empty group name (expected a name, got \"\"): leave group out for "
           "the group \"default\"");
  if (options.chunk < 0)
    refuse(name, concat("negative chunk (expected zero or more, got ",
                        options.chunk, "): number the chunks from 0"));
  if (options.model_parallel < ModelParallel::replicated ||
      options.model_parallel > ModelParallel::split)
    refuse(name, concat("unknown ModelParallel (expected a code from 0 to 1, "
                        "got ",
                        static_cast<int>(options.model_parallel),
                        "): use an enumerator"));
  if (options.unmarked < Unmarked::zero || options.unmarked > Unmarked::keep)
    refuse(name,
           concat("unknown Unmarked (expected a code from 0 to 1, got ",
                  static_cast<int>(options.unmarked), "): use an enumerator"));
}

/// Two names of one storage differ in nothing else.
void require_same(std::string_view name, const ParameterInfo& tied,
                  const ParameterInfo& target) {
  using detail::concat;
  const auto require = [&](bool same, std::string_view what, const auto& got,
                           const auto& expected) {
    if (!same)
      refuse(name, concat("tied to ", detail::quoted(target.name),
                          ", but differs from it (", what, ": expected ",
                          expected, ", got ", got,
                          "): declare both alike, they are one storage"));
  };
  require(tied.extents == target.extents, "extents", tied.extents,
          target.extents);
  require(tied.dtype == target.dtype, "type", tied.dtype, target.dtype);
  require(tied.gradient_dtype == target.gradient_dtype, "gradient type",
          tied.gradient_dtype, target.gradient_dtype);
  require(tied.group == target.group, "group", detail::quoted(tied.group),
          detail::quoted(target.group));
  require(tied.chunk == target.chunk, "chunk", tied.chunk, target.chunk);
  require(tied.model_parallel == target.model_parallel, "model_parallel",
          static_cast<int>(tied.model_parallel),
          static_cast<int>(target.model_parallel));
  require(tied.unmarked == target.unmarked, "unmarked",
          static_cast<int>(tied.unmarked), static_cast<int>(target.unmarked));
  require(tied.frozen == target.frozen, "frozen", int(tied.frozen),
          int(target.frozen));
}

}  // namespace

ParameterId ParameterSet::add(std::string name,
                              std::vector<std::int64_t> extents,
                              ParameterOptions options) {
  using detail::concat;
  if (name.empty())
    throw InvalidArgument(concat("parameter ", parameters_.size(),
                                 " has an empty name: give each parameter a "
                                 "name of its own"));
  const DType by_default =
      size_of(options.dtype) == 2 ? DType::float32 : options.dtype;
  const DType gradient_dtype = options.gradient_dtype.value_or(by_default);
  check_dtypes(name, options.dtype, gradient_dtype);
  const std::int64_t size = checked_size(name, extents, options.dtype);
  check_options(name, options);

  // What can fail comes first, so that the set is unchanged if it does.
  reserve_one_more();
  const std::size_t hash = std::hash<std::string_view>{}(name);
  Slot& slot = slots_[find_slot(name, hash)];
  if (slot.index >= 0)
    refuse(name,
           concat("the name is taken (by parameter ", slot.index,
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
                     .storage = id};
  tie(info);
  parameters_.push_back(std::move(info));
  slot = {hash, id.index};
  return id;
}

void ParameterSet::tie(ParameterInfo& info) {
  using detail::concat;
  if (tied_elsewhere_.contains(info.name)) {
    std::string_view tied;
    for (const ParameterInfo& each : parameters_)
      if (each.tied_to == info.name && tied.empty()) tied = each.name;
    refuse(info.name, concat("declared after parameter ", detail::quoted(tied),
                             ", which is tied to it: declare it first"));
  }
  if (info.tied_to.empty()) return;
  if (info.tied_to == info.name)
    refuse(info.name, "tied to itself: name the other parameter");
  const std::optional<ParameterId> target = find(info.tied_to);
  if (!target) {
    tied_elsewhere_.insert(info.tied_to);
    return;
  }
  require_same(info.name, info, (*this)[*target]);
  info.storage = (*this)[*target].storage;
}

const ParameterInfo& ParameterSet::operator[](ParameterId id) const {
  if (id.index < 0 || id.index >= size())
    throw InvalidArgument(detail::concat(
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
