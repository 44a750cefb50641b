// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/update_classes.hpp"

namespace kzero::detail {

UpdateClasses::UpdateClasses(std::span<const ParameterInfo> parameters,
                             std::span<const std::int32_t> group_of) {
  class_of_.reserve(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    class_of_.push_back(
        find_class({group_of[i], main_dtype(parameters[i].dtype), 0}));
}

std::int32_t UpdateClasses::find_class(const Key& key) {
  const auto [place, added] =
      classes_.try_emplace(key, static_cast<std::int32_t>(keys_.size()));
  if (added) {
    keys_.push_back(key);
    prepared_.emplace_back();
  }
  return place->second;
}

std::int64_t UpdateClasses::count(std::int64_t parameter) const {
  const auto index = class_of_[static_cast<std::size_t>(parameter)];
  return std::get<2>(keys_[static_cast<std::size_t>(index)]) + advances_;
}

void UpdateClasses::set_count(std::int64_t parameter, std::int64_t count) {
  std::int32_t& index = class_of_[static_cast<std::size_t>(parameter)];
  Key key = keys_[static_cast<std::size_t>(index)];
  std::get<2>(key) = count - advances_;
  index = find_class(key);
}

void UpdateClasses::prepare(std::span<const Rule> rules) {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const auto& [group, dtype, count] = keys_[i];
    prepared_[i] = prepare_step(rules[static_cast<std::size_t>(group)],
                                count + advances_ + 1, dtype);
  }
}

}  // namespace kzero::detail
