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

ParameterLayout layout_of_parameter(const ShardedOptimizer& optimizer,
                                    ParameterId id) {
  const ParameterInfo& info = optimizer.parameters()[id];
  ParameterLayout parameter{
      info.name, OptimizerAccess::group_name(optimizer, id),
      0,         info.extents,
      {},        id};
  const auto names = OptimizerAccess::state_names(optimizer, id);
  parameter.arrays.reserve(1 + names.size());
  parameter.arrays.push_back({"value", info.dtype});
  if (info.frozen) return parameter;
  parameter.update_count = optimizer.update_count(id);
  for (const std::string_view name : names)
    parameter.arrays.push_back({std::string(name), main_dtype(info.dtype)});
  return parameter;
}

ScalerLayout layout_of_scaler(const ShardedOptimizer& optimizer) {
  const Scaler& scaler = optimizer.options().scaler;
  ScalerLayout layout{std::string(kind_name(scaler.kind())),
                      OptimizerAccess::loss_scale(optimizer)};
  if (scaler.kind() == Scaler::Kind::dynamic) layout.scaling = scaler.scaling();
  return layout;
}

}  // namespace

CheckpointContent content_now(std::int64_t step, std::int64_t world_size) {
  return {step, world_size, std::string(version()), utc_now(), {}};
}

std::string_view kind_name(Scaler::Kind kind) {
  switch (kind) {
    case Scaler::Kind::constant:
      return "constant";
    case Scaler::Kind::dynamic:
      return "dynamic";
    case Scaler::Kind::none:
      break;
  }
  return "none";
}

bool is_kind(std::string_view name) {
  using enum Scaler::Kind;
  return name == kind_name(none) || name == kind_name(constant) ||
         name == kind_name(dynamic);
}

FileLayout layout_of(const ShardedOptimizer& optimizer, const UserData& user) {
  FileLayout layout;
  layout.content =
      content_now(optimizer.steps(), optimizer.communicator()->size());
  layout.content.user = user;
  const StepCounters counters = OptimizerAccess::counters(optimizer);
  layout.skipped_total = counters.skipped_total;
  layout.skipped_in_a_row = counters.skipped_in_a_row;
  const auto& names = OptimizerAccess::group_names(optimizer);
  for (std::size_t g = 0; g < names.size(); ++g)
    layout.groups.push_back(
        layout_of_group(names[g], OptimizerAccess::rule(optimizer, g)));
  layout.parameters.reserve(
      static_cast<std::size_t>(optimizer.parameters().size()));
  for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i) {
    const ParameterInfo& info = optimizer.parameters()[{i}];
    if (info.storage == ParameterId{i})
      layout.parameters.push_back(layout_of_parameter(optimizer, {i}));
    else
      layout.tied.push_back(info.name);
  }
  layout.scaler = layout_of_scaler(optimizer);
  return layout;
}

}  // namespace kzero::detail
