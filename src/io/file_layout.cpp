// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/file_layout.hpp"

#include <array>
#include <ctime>
#include <kzero/version.hpp>

#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::array<char, 32> text = {};
  const std::size_t length =
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text.data(), length);
}

GroupLayout layout_of_group(const std::string& name, const Rule& rule) {
  GroupLayout group{name, std::string(rule.name()), {}};
  for (const std::string_view each : rule.hyperparameters())
    group.hyperparameters.emplace_back(each, rule.get(each));
  return group;
}

ParameterLayout layout_of_parameter(ShardedOptimizer& optimizer,
                                    ParameterId id) {
  const ParameterInfo& info = optimizer.parameters()[id];
  ParameterLayout parameter{info.name,
                            info.group,
                            optimizer.update_count(id),
                            info.extents,
                            {{"value", info.dtype}}};
  const std::int64_t bucket = optimizer.plan().placement(id).bucket;
  const auto shards = OptimizerAccess::shard_arrays(optimizer, bucket);
  const auto names = OptimizerAccess::state_names(optimizer, id);
  for (std::size_t k = 0; k < names.size(); ++k)
    parameter.arrays.push_back({std::string(names[k]), shards[k].dtype});
  return parameter;
}

}  // namespace

FileLayout layout_of(ShardedOptimizer& optimizer, const UserData& user) {
  FileLayout layout;
  layout.content = {optimizer.steps(), optimizer.communicator()->size(),
                    std::string(version()), utc_now(), user};
  const StepCounters counters = OptimizerAccess::counters(optimizer);
  layout.skipped_total = counters.skipped_total;
  layout.skipped_in_a_row = counters.skipped_in_a_row;
  const auto& names = OptimizerAccess::group_names(optimizer);
  for (std::size_t g = 0; g < names.size(); ++g)
    layout.groups.push_back(
        layout_of_group(names[g], OptimizerAccess::rule(optimizer, g)));
  for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i)
    layout.parameters.push_back(layout_of_parameter(optimizer, ParameterId{i}));
  return layout;
}

}  // namespace kzero::detail
