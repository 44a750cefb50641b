// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/model_group.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <map>
#include <string_view>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/model_declarations.hpp"
#include "optim/setup_facts.hpp"

namespace kzero::detail {
namespace {

constexpr Subject subject{"model-parallel set-up"};

void for_each_shared_option(const OptimizerOptions& options, const Fact& fact) {
  for_each_setup_fact(ParameterSet(), options,
                      [&](std::string_view name, std::string_view value) {
                        // Groups and buckets are a rank's own business.
                        if (name == "schedule" || name == "clip_norm" ||
                            name == "nonfinite" || name == "scaler" ||
                            name == "reduction" || name == "library version")
                          fact(name, value);
                      });
}

}  // namespace

ModelGroup single_model(const ParameterSet& parameters) {
  ModelGroup model;
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    if (!info.tied_to.empty() && info.storage.index == i)
      throw InvalidArgument(concat(
          "parameter ", quoted(info.name), " is tied to ", quoted(info.tied_to),
          ", which this set does not have: declare that one first, or give "
          "OptimizerOptions::model_parallel when another rank has it"));
    model.counted.push_back(info.storage.index == i ? 1 : 0);
    model.split_place.push_back(-1);
    model.keep_place.push_back(-1);
  }
  return model;
}

namespace {

/// Two ranks of one data-parallel group would count everything twice.
void require_other_data(Communicator& group, std::uint64_t data_group) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather(&data_group, sizeof data_group, all.data(), subject);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto same =
        std::find(all.begin(), all.begin() + std::ptrdiff_t(i), all[i]);
    if (same != all.begin() + std::ptrdiff_t(i))
      throw InvalidArgument(concat(
          "ranks ", same - all.begin(), " and ", i,
          " of the model-parallel group belong to one optimizer communicator "
          "(expected every rank to have another one): the group holds one rank "
          "of each part of the model"));
  }
}

/// Numbers the parameters that several ranks hold, under their own name or as a
/// copy.
class Places {
 public:
  /// Of those whose kind, in words, has this one.
  Places(const Declarations& all, std::string_view kind) {
    std::map<std::string_view, std::int64_t> holders;
    for (const auto& [name, declaration] : all)
      if (declaration.kind.find(kind) != std::string::npos)
        ++holders[declaration.tied_to.empty() ? name : declaration.tied_to];
    for (const auto& [name, count] : holders)
      if (count > 1) places_.emplace(name, std::ssize(places_));
  }

  std::int64_t count() const { return std::ssize(places_); }
  std::int64_t of(std::string_view name) const {
    const auto place = places_.find(name);
    return place == places_.end() ? -1 : place->second;
  }

 private:
  std::map<std::string_view, std::int64_t> places_;
};

}  // namespace

ModelGroup agree_on_model(Communicator& group, const ParameterSet& parameters,
                          const OptimizerOptions& options,
                          std::uint64_t data_group,
                          const std::string& problem) {
  require_agreement(
      group, subject,
      [&](const auto& fact) { for_each_shared_option(options, fact); },
      problem);
  // From here on every rank of the group knows the same and throws alike.
  require_other_data(group, data_group);
  const Declarations all = gather_declarations(group, parameters, options);
  check(all);
  const Places split(all, split_kind);
  const Places kept(all, kept_kind);
  ModelGroup model;
  model.split_count = split.count();
  model.keep_count = kept.count();
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    const Role role = role_of(parameters, {i});
    const bool counts =
        role == Role::split ||
        (role == Role::replicated &&
         all.lower_bound(info.name)->second.rank == group.rank());
    const std::string target = target_of(parameters, {i});
    const std::string_view whole = target.empty() ? info.name : target;
    model.counted.push_back(counts ? 1 : 0);
    model.split_place.push_back(split.of(whole));
    model.keep_place.push_back(info.unmarked == Unmarked::keep ? kept.of(whole)
                                                               : -1);
  }
  return model;
}

}  // namespace kzero::detail
