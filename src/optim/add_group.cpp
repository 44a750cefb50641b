// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// More parameters while a training runs.
#include <algorithm>
#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "layout/grow_plan.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/rule_groups.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

constexpr Subject subject{"add_group"};

}  // namespace

/// The optimizer as it will be.
struct OptimizerCore::Growth {
  ParameterSet parameters;
  OptimizerOptions options;
  std::vector<std::string> group_names;
  std::vector<Rule> rules;
  std::vector<std::int32_t> group_of;
  ModelGroup model;
  Plan plan;
  std::unique_ptr<Storage> storage;  // of the new buffers
  MatrixUpdates matrices;
  std::vector<ParameterId> ids;  // of the new parameters
};

void OptimizerCore::require_new_group(const std::string& group,
                                      const ParameterSet& added) const {
  require_unmarked(subject.operation);
  if (group.empty())
    throw InvalidArgument(
        "add_group: the group has no name: give it one of its own");
  if (std::ranges::find(group_names, group) != group_names.end())
    throw InvalidArgument(concat("add_group: there is a group ", quoted(group),
                                 " already: give the new one another name"));
  for (const ParameterInfo& info : added.parameters())
    if (info.group != "default" && info.group != group)
      throw InvalidArgument(concat(
          "add_group: parameter ", quoted(info.name), " is declared in group ",
          quoted(info.group), " (expected ", quoted(group),
          " or none): add each group by a call of its own"));
}

// The groups that there are keep their indices and hyperparameters.
void OptimizerCore::grow_groups(Growth& growth) const {
  const RuleGroups groups = group_rules(growth.parameters, growth.options);
  require_whole_matrices(growth.parameters, growth.options, groups,
                         communicator->size());
  growth.group_names = group_names;
  growth.rules = rules;
  const auto index_of = [&](std::int32_t group) {
    const std::string& name = groups.names[static_cast<std::size_t>(group)];
    const auto place = std::ranges::find(growth.group_names, name);
    const auto index = place - growth.group_names.begin();
    if (place == growth.group_names.end()) {
      growth.group_names.push_back(name);
      growth.rules.push_back(groups.rules[static_cast<std::size_t>(group)]);
    }
    return static_cast<std::int32_t>(index);
  };
  for (const std::int32_t group : groups.group_of)
    growth.group_of.push_back(index_of(group));
  // One without a parameter on this rank is a group all the same.
  for (std::int32_t group = 0; group < std::ssize(groups.names); ++group)
    index_of(group);
  require_no_trust_ratio(growth.group_names, growth.rules);
}

void OptimizerCore::grow_plan(Growth& growth) const {
  PlanOptions with_ranks = growth.options.plan;
  with_ranks.ranks = communicator->size();
  growth.plan = detail::grow_plan(plan, growth.parameters, with_ranks);
  std::vector<ParameterId>& order = growth.options.plan.order;
  if (order.empty()) return;
  for (auto id = growth.ids.rbegin(); id != growth.ids.rend(); ++id)
    order.push_back(*id);
}

std::vector<ParameterId> OptimizerCore::add_group(const std::string& group,
                                                  const ParameterSet& added,
                                                  const Rule& rule) {
  wait_for_all_parameters();  // first: others may wait for this rank
  const auto turn = progress_.take();
  Growth growth;
  std::string problem;
  try {
    require_new_group(group, added);
    growth.parameters = parameters;
    growth.ids = growth.parameters.append(added, group);
    growth.options = options;
    growth.options.groups.insert_or_assign(group, rule);
    grow_groups(growth);
    grow_plan(growth);
    if (!options.model_parallel) growth.model = single_model(growth.parameters);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  // What has a problem may not be there: the ranks of the model are.
  const bool grown = problem.empty();
  agree(*communicator, subject, grown ? growth.parameters : parameters,
        grown ? growth.options : options, problem, growth.model);
  problem.clear();
  try {
    growth.storage =
        make_storage(growth.plan, growth.parameters, growth.group_of,
                     growth.rules, plan.buffers().size());
    growth.matrices = make_matrices(growth.plan, growth.parameters,
                                    growth.group_of, growth.rules);
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    problem = concat("add_group: memory for the parameters: ", error.what());
  }
  throw_on_all(subject, problem);
  try {
    take(growth);
  } catch (const std::exception& error) {
    fail(error.what());
    throw;
  }
  return growth.ids;
}

void OptimizerCore::take(Growth& growth) {
  const auto before = static_cast<std::size_t>(parameters.size());
  fence(space, "kzero::add_group");
  parameters = std::move(growth.parameters);
  options = std::move(growth.options);
  group_names = std::move(growth.group_names);
  rules = std::move(growth.rules);
  group_of_ = std::move(growth.group_of);
  model_ = std::move(growth.model);
  plan = std::move(growth.plan);
  storage->take(*growth.storage);
  matrices_ = std::move(growth.matrices);
  classes.add(parameters.parameters().subspan(before),
              std::span(group_of_).subspan(before));
  hash_rules();
  index_segments();
  set_up_buckets();
  set_up_parameters();
  set_up_pipeline();
  // What lies in the caller's memory starts with the values that are there.
  reload_main({static_cast<std::int64_t>(before)});
  forget_averaged();
}

}  // namespace kzero::detail
