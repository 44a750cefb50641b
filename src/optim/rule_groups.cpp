// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/rule_groups.hpp"

#include <kzero/error.hpp>
#include <limits>
#include <unordered_map>

#include "core/message.hpp"
#include "kernels/blas.hpp"
#include "kernels/prepared_step.hpp"

namespace kzero::detail {
namespace {

constexpr std::string_view suffix = "/beside";

class Grouping {
 public:
  explicit Grouping(const OptimizerOptions& options) : options_(options) {}

  bool has(const std::string& name) const { return known_.contains(name); }

  /// The group's index; a new one brings the one beside it.
  std::int32_t find_or_add(const std::string& name) {
    const auto [place, added] = known_.try_emplace(
        name, static_cast<std::int32_t>(groups.names.size()));
    const std::int32_t index = place->second;
    if (!added) return index;
    const Rule& rule = rule_of_group(options_, name);
    groups.names.push_back(name);
    groups.rules.push_back(rule);
    beside_.push_back(-1);
    if (!updates_matrices(rule)) return index;
    const std::string beside = beside_name(name);
    if (const Rule& other = rule_of_group(options_, beside);
        updates_matrices(other))
      throw InvalidArgument(concat(
          "OptimizerOptions::groups has the rule ", other.name(), " for group ",
          quoted(beside), ", which updates what is no matrix in group ",
          quoted(name), " beside its rule ", rule.name(),
          " (expected a rule that updates elements, got one for matrices): "
          "give it another rule, such as AdamW"));
    const std::int32_t place_beside = find_or_add(beside);
    beside_[static_cast<std::size_t>(index)] = place_beside;
    return index;
  }

  void add(const ParameterInfo& info) {
    const std::int32_t own = find_or_add(info.group);
    const std::int32_t beside = beside_[static_cast<std::size_t>(own)];
    groups.group_of.push_back(beside < 0 || is_matrix(info) ? own : beside);
  }

  RuleGroups groups;

 private:
  const OptimizerOptions& options_;
  std::unordered_map<std::string, std::int32_t> known_;
  std::vector<std::int32_t> beside_;  // by group; -1: none
};

}  // namespace

std::string beside_name(std::string_view group) {
  return std::string(group) + std::string(suffix);
}

const Rule& rule_of_group(const OptimizerOptions& options,
                          const std::string& group) {
  if (const auto own = options.groups.find(group); own != options.groups.end())
    return own->second;
  if (group.ends_with(suffix) && group.size() > suffix.size()) {
    const Rule& first =
        rule_of_group(options, group.substr(0, group.size() - suffix.size()));
    if (updates_matrices(first)) return *first.beside();
  }
  return options.rule;
}

const Rule& rule_of_parameter(const OptimizerOptions& options,
                              const ParameterInfo& info) {
  const Rule& rule = rule_of_group(options, info.group);
  if (!updates_matrices(rule) || is_matrix(info)) return rule;
  return rule_of_group(options, beside_name(info.group));
}

RuleGroups group_rules(const ParameterSet& parameters,
                       const OptimizerOptions& options) {
  Grouping grouping(options);
  for (const ParameterInfo& info : parameters.parameters()) grouping.add(info);
  for (const auto& [name, rule] : options.groups) {
    if (grouping.has(name)) continue;
    grouping.find_or_add(name);
    grouping.groups.unexpected.push_back(name);
  }
  return std::move(grouping.groups);
}

void require_whole_matrices(const ParameterSet& parameters,
                            const OptimizerOptions& options,
                            const RuleGroups& groups, int ranks) {
  if (ranks > 1 && options.plan.partition == Partition::elements) {
    for (std::size_t i = 0; i < groups.rules.size(); ++i)
      if (updates_matrices(groups.rules[i]))
        throw InvalidArgument(concat(
            "the rule ", groups.rules[i].name(), " of group ",
            quoted(groups.names[i]),
            " updates whole matrices, but plan.partition is elements, which "
            "cuts them over the ",
            ranks,
            " ranks (expected a partition of whole parameters): use "
            "Partition::parameters or Partition::buckets, or a rule that "
            "updates elements"));
  }
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    const auto group =
        static_cast<std::size_t>(groups.group_of[static_cast<std::size_t>(i)]);
    const Rule& rule = groups.rules[group];
    if (info.frozen || !updates_matrices(rule)) continue;
    const auto refuse = [&](std::string_view why) {
      throw InvalidArgument(concat(
          "parameter ", quoted(info.name), " [", info.extents[0], ",",
          info.extents[1], "] is a matrix for the rule ", rule.name(), ", but ",
          why, ": declare it in group ", quoted(beside_name(info.group)),
          " or another one whose rule updates elements"));
    };
    if (info.model_parallel == ModelParallel::split)
      refuse(
          "split over the model-parallel group (expected all of it on one "
          "rank)");
    if (info.extents[0] > most_rows || info.extents[1] > most_rows)
      refuse(
          concat("has more rows or columns than BLAS can count (expected at "
                 "most ",
                 most_rows, ")"));
    if (info.size == 0) continue;
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 16;
    const std::int64_t elements = matrix_work_elements(
        rule, info.extents[0], info.extents[1], options.clip_norm.has_value());
    if (elements < 0 || elements > most)
      throw InvalidArgument(
          concat("the rule ", rule.name(), " wants ", elements,
                 " elements of work memory for parameter ", quoted(info.name),
                 " (expected a number from 0 to ", most,
                 "): correct its work_elements(rows, columns)"));
  }
}

}  // namespace kzero::detail
