// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/update_classes.hpp"

#include <utility>

namespace kzero::detail {

void UpdateClasses::add(std::span<const ParameterInfo> parameters,
                        std::span<const std::int32_t> group_of) {
  class_of_.reserve(class_of_.size() + parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    class_of_.push_back(
        join({group_of[i], main_dtype(parameters[i].dtype), -advances_}));
}

std::int32_t UpdateClasses::join(const Key& key) {
  auto place = classes_.find(key);
  if (place == classes_.end()) {
    if (free_.empty()) {
      place =
          classes_.emplace(key, static_cast<std::int32_t>(keys_.size())).first;
      keys_.push_back(key);
      members_.push_back(0);
      prepared_.emplace_back();
    } else {
      free_.back().key() = key;
      place = classes_.insert(std::move(free_.back())).position;
      free_.pop_back();
      keys_[static_cast<std::size_t>(place->second)] = key;
    }
  }
  ++members_[static_cast<std::size_t>(place->second)];
  return place->second;
}

void UpdateClasses::leave(std::int32_t index) {
  const auto i = static_cast<std::size_t>(index);
  if (--members_[i] == 0) free_.push_back(classes_.extract(keys_[i]));
}

std::int64_t UpdateClasses::count(std::int64_t parameter) const {
  const auto index = class_of_[static_cast<std::size_t>(parameter)];
  return std::get<2>(keys_[static_cast<std::size_t>(index)]) + advances_;
}

void UpdateClasses::set_count(std::int64_t parameter, std::int64_t count) {
  std::int32_t& index = class_of_[static_cast<std::size_t>(parameter)];
  Key key = keys_[static_cast<std::size_t>(index)];
  std::get<2>(key) = count - advances_;
  leave(index);
  index = join(key);
}

void UpdateClasses::prepare(std::span<const Rule> rules) {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (members_[i] == 0) continue;
    const auto& [group, dtype, count] = keys_[i];
    prepared_[i] = prepare_step(rules[static_cast<std::size_t>(group)],
                                count + advances_ + 1, dtype);
  }
}

}  // namespace kzero::detail
