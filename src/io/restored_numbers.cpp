// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/restored_numbers.hpp"

#include <algorithm>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/loaded_scaler.hpp"
#include "io/user_data_wire.hpp"
#include "io/wire.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

/// A hyperparameter by its place in the rule's list, and its value.
struct Setting {
  std::size_t place = 0;
  double value = 0;
};

/// Sets what the rule takes, and returns what it refuses.
std::vector<Setting> set_all(Rule& rule, std::vector<Setting> settings) {
  const auto names = rule.hyperparameters();
  // Some are valid only together with others (nesterov with no dampening):
  // what is refused is tried again when the others have been set.
  while (!settings.empty()) {
    std::vector<Setting> refused;
    for (const Setting& each : settings) {
      try {
        rule.set(names[each.place], each.value);
      } catch (const InvalidArgument&) {
        refused.push_back(each);
      }
    }
    if (refused.size() == settings.size()) break;
    settings = std::move(refused);
  }
  return settings;
}

/// Why the rule refuses this.
std::string refusal(Rule rule, const Setting& setting) {
  try {
    rule.set(rule.hyperparameters()[setting.place], setting.value);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

/// The settings of the file's group that the model's rule knows too.
std::vector<Setting> shared_settings(const GroupLayout& model,
                                     const GroupLayout& file) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < model.hyperparameters.size(); ++i)
    for (const auto& [name, value] : file.hyperparameters)
      if (name == model.hyperparameters[i].first)
        settings.push_back({i, value});
  return settings;
}

void take_group(Rule rule, const GroupLayout& model, const GroupLayout* file,
                Match match, RestoredNumbers& numbers) {
  auto& places = numbers.hyperparameters.emplace_back();
  auto& values = numbers.values.emplace_back();
  if (file == nullptr) return;
  const std::vector<Setting> settings = shared_settings(model, *file);
  const std::vector<Setting> refused = set_all(rule, settings);
  for (const Setting& each : refused) {
    const std::string reason =
        concat("group ", detail::quoted(model.name), ": ", refusal(rule, each));
    if (match == Match::strict) throw CheckpointError(reason);
    numbers.warnings.push_back(
        concat("the program keeps its own value (", reason, ")"));
  }
  for (const Setting& each : settings) {
    if (std::ranges::find(refused, each.place, &Setting::place) !=
        refused.end())
      continue;
    places.push_back(static_cast<std::int64_t>(each.place));
    values.push_back(each.value);
  }
}

void take_parameter(ParameterId id, const ParameterMatch& match,
                    RestoredNumbers& numbers) {
  numbers.sources.push_back(match.sources);
  if (match.in_file == nullptr) return;
  const std::int64_t count = match.in_file->update_count;
  if (count < 0)
    throw CheckpointError(concat("the update count of ",
                                 detail::quoted(match.in_file->name),
                                 " is negative"));
  const auto i = static_cast<std::size_t>(id.index);
  numbers.loaded[i] = 1;
  numbers.update_counts[i] = match.anew ? 0 : count;
}

}  // namespace

RestoredNumbers restored_numbers(const ShardedOptimizer& optimizer,
                                 const FileLayout& model,
                                 const FileLayout& file,
                                 const LoadOptions& options, Medium medium) {
  LayoutMatch match = match_layouts(model, file, options, medium);
  RestoredNumbers numbers;
  numbers.content = file.content;
  numbers.content.missing = std::move(match.missing);
  numbers.content.extra = std::move(match.extra);
  numbers.content.misshaped = std::move(match.misshaped);
  numbers.skipped_total = file.skipped_total;
  numbers.skipped_in_a_row = file.skipped_in_a_row;
  if (file.content.step < 0 || file.skipped_total < 0 ||
      file.skipped_in_a_row < 0)
    throw CheckpointError("its count of steps is negative");
  const auto count = static_cast<std::size_t>(optimizer.parameters().size());
  numbers.loaded.assign(count, 0);
  numbers.update_counts.assign(count, 0);
  for (std::size_t p = 0; p < model.parameters.size(); ++p)
    take_parameter(model.parameters[p].id, match.parameters[p], numbers);
  for (std::size_t g = 0; g < model.groups.size(); ++g)
    take_group(OptimizerAccess::rule(optimizer, g), model.groups[g],
               match.groups[g], options.match, numbers);
  LoadedScaler scaler = loaded_scaler(optimizer.options().scaler, file.scaler);
  numbers.loss_scale = scaler.state;
  if (!scaler.warning.empty())
    numbers.warnings.push_back(std::move(scaler.warning));
  return numbers;
}

namespace {

/// Calls f(member) for what is broadcast, but for the user data.
template <class Numbers, class F>
void for_each_member(Numbers& numbers, F&& f) {
  f(numbers.content.step);
  f(numbers.skipped_total);
  f(numbers.skipped_in_a_row);
  f(numbers.content.world_size);
  f(numbers.content.library_version);
  f(numbers.content.created);
  f(numbers.content.missing);
  f(numbers.content.extra);
  f(numbers.content.misshaped);
  f(numbers.loaded);
  f(numbers.update_counts);
  f(numbers.hyperparameters);
  f(numbers.values);
  f(numbers.loss_scale.scale);
  f(numbers.loss_scale.good_steps);
  f(numbers.loss_scale.hysteresis_left);
}

}  // namespace

void broadcast(Communicator& communicator, RestoredNumbers& numbers) {
  const Subject subject{"load"};
  WireWriter writer;
  if (communicator.rank() == 0) {
    for_each_member(numbers, [&](const auto& each) { writer.put(each); });
    put(writer, numbers.content.user);
  }
  auto size = static_cast<std::int64_t>(writer.bytes().size());
  communicator.broadcast(&size, sizeof(size), 0, subject);
  writer.bytes().resize(static_cast<std::size_t>(size));
  communicator.broadcast(writer.bytes().data(), size, 0, subject);
  if (communicator.rank() == 0) return;
  WireReader reader(writer.bytes());
  for_each_member(numbers, [&](auto& each) { reader.take(each); });
  take(reader, numbers.content.user);
}

void restore(ShardedOptimizer& optimizer, const RestoredNumbers& numbers) {
  for (std::size_t g = 0; g < numbers.hyperparameters.size(); ++g) {
    std::vector<Setting> settings;
    for (std::size_t i = 0; i < numbers.hyperparameters[g].size(); ++i)
      settings.push_back(
          {static_cast<std::size_t>(numbers.hyperparameters[g][i]),
           numbers.values[g][i]});
    Rule rule = OptimizerAccess::rule(optimizer, g);
    const std::vector<Setting> refused = set_all(rule, std::move(settings));
    if (!refused.empty()) throw InvalidArgument(refusal(rule, refused.front()));
    OptimizerAccess::set_rule(optimizer, g, rule);
  }
  for (std::size_t i = 0; i < numbers.loaded.size(); ++i) {
    const ParameterId id{static_cast<std::int64_t>(i)};
    if (numbers.loaded[i] != 0 && !optimizer.parameters()[id].frozen)
      OptimizerAccess::set_update_count(optimizer, id,
                                        numbers.update_counts[i]);
  }
  OptimizerAccess::set_counters(
      optimizer,
      {numbers.content.step, numbers.skipped_total, numbers.skipped_in_a_row});
  OptimizerAccess::set_loss_scale(optimizer, numbers.loss_scale);
}

}  // namespace kzero::detail
