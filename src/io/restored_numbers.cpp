// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/restored_numbers.hpp"

#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/loaded_scaler.hpp"
#include "io/user_data_wire.hpp"
#include "io/wire.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

std::vector<double> values_of(const Rule& rule) {
  std::vector<double> values;
  for (const std::string_view name : rule.hyperparameters())
    values.push_back(rule.get(name));
  return values;
}

/// The values of the file where it has some, else the rule's own.
std::vector<double> merged_values(const Rule& rule, const GroupLayout& file) {
  std::vector<double> values = values_of(rule);
  const auto names = rule.hyperparameters();
  for (std::size_t i = 0; i < names.size(); ++i)
    for (const auto& [name, value] : file.hyperparameters)
      if (name == names[i]) values[i] = value;
  return values;
}

/// Sets what the rule takes, one after another, and warns of the others.
void set_one_by_one(Rule& rule, const std::vector<double>& values,
                    const std::string& group,
                    std::vector<std::string>& warnings) {
  const auto names = rule.hyperparameters();
  for (std::size_t i = 0; i < names.size(); ++i) {
    try {
      rule.set(names[i], values[i]);
    } catch (const InvalidArgument& error) {
      warnings.push_back(concat("the program keeps its own value (group ",
                                detail::quoted(group), ": ", error.what(),
                                ")"));
    }
  }
}

void take_group(Rule rule, const GroupLayout& model, const GroupLayout* file,
                Match match, RestoredNumbers& numbers) {
  auto& values = numbers.values.emplace_back();
  if (file == nullptr) return;
  const std::vector<double> merged = merged_values(rule, *file);
  try {
    // Some are valid only together with others.
    rule.set(merged);
  } catch (const InvalidArgument& error) {
    if (match == Match::strict)
      throw CheckpointError(
          concat("group ", detail::quoted(model.name), ": ", error.what()));
    set_one_by_one(rule, merged, model.name, numbers.warnings);
  }
  values = values_of(rule);
}

/// More than any training makes, and far from where counts overflow.
constexpr std::int64_t largest_count = std::int64_t{1} << 62;

bool is_count(std::int64_t number) {
  return number >= 0 && number <= largest_count;
}

void require_count(std::string_view what, std::int64_t count) {
  if (!is_count(count))
    throw CheckpointError(concat(
        what, " is ", count, ", expected a number from 0 to ", largest_count));
}

void take_parameter(ParameterId id, const ParameterMatch& match,
                    bool weights_only, RestoredNumbers& numbers) {
  numbers.origins.add(match.origins);
  if (match.in_file == nullptr) return;
  const std::int64_t count = match.in_file->update_count;
  if (!weights_only && !is_count(count))
    require_count(
        concat("the update count of ", detail::quoted(match.in_file->name)),
        count);
  const auto i = static_cast<std::size_t>(id.index);
  numbers.loaded[i] = 1;
  numbers.update_counts[i] = match.anew ? 0 : count;
}

void take_counters(const ShardedOptimizer& optimizer, const FileLayout& file,
                   RestoredNumbers& numbers) {
  numbers.skipped_total = file.skipped_total;
  numbers.skipped_in_a_row = file.skipped_in_a_row;
  require_count("the count of steps", file.content.step);
  require_count("skipped_total", file.skipped_total);
  require_count("skipped_in_a_row", file.skipped_in_a_row);
  LoadedScaler scaler = loaded_scaler(optimizer.options().scaler, file.scaler);
  numbers.loss_scale = scaler.state;
  if (!scaler.warning.empty())
    numbers.warnings.push_back(std::move(scaler.warning));
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
  const auto count = static_cast<std::size_t>(optimizer.parameters().size());
  numbers.loaded.assign(count, 0);
  numbers.update_counts.assign(count, 0);
  for (std::size_t p = 0; p < model.parameters.size(); ++p)
    take_parameter(model.parameters[p].id, match.parameters[p],
                   options.weights_only, numbers);
  for (std::size_t g = 0; g < model.groups.size(); ++g)
    take_group(OptimizerAccess::rule(optimizer, g), model.groups[g],
               match.groups[g], options.match, numbers);
  if (options.weights_only)
    numbers.keeps_counters = 1;
  else
    take_counters(optimizer, file, numbers);
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
  f(numbers.values);
  f(numbers.loss_scale.scale);
  f(numbers.loss_scale.good_steps);
  f(numbers.loss_scale.hysteresis_left);
  f(numbers.keeps_counters);
}

}  // namespace

void broadcast(Communicator& communicator, RestoredNumbers& numbers,
               Subject subject, int root) {
  WireWriter writer;
  if (communicator.rank() == root) {
    for_each_member(numbers, [&](const auto& each) { writer.put(each); });
    put(writer, numbers.content.user);
  }
  auto size = static_cast<std::int64_t>(writer.bytes().size());
  communicator.broadcast(&size, sizeof(size), root, subject);
  writer.bytes().resize(static_cast<std::size_t>(size));
  communicator.broadcast(writer.bytes().data(), size, root, subject);
  if (communicator.rank() == root) return;
  WireReader reader(writer.bytes());
  for_each_member(numbers, [&](auto& each) { reader.take(each); });
  take(reader, numbers.content.user);
}

void restore(ShardedOptimizer& optimizer, const RestoredNumbers& numbers) {
  for (std::size_t g = 0; g < numbers.values.size(); ++g) {
    if (numbers.values[g].empty()) continue;
    Rule rule = OptimizerAccess::rule(optimizer, g);
    rule.set(numbers.values[g]);
    OptimizerAccess::set_rule(optimizer, g, rule);
  }
  for (std::size_t i = 0; i < numbers.loaded.size(); ++i) {
    const ParameterId id{static_cast<std::int64_t>(i)};
    if (numbers.loaded[i] != 0 && !optimizer.parameters()[id].frozen)
      OptimizerAccess::set_update_count(optimizer, id,
                                        numbers.update_counts[i]);
  }
  if (numbers.keeps_counters == 0) {
    OptimizerAccess::set_counters(optimizer,
                                  {numbers.content.step, numbers.skipped_total,
                                   numbers.skipped_in_a_row});
    OptimizerAccess::set_loss_scale(optimizer, numbers.loss_scale);
  }
  OptimizerAccess::forget_averaged(optimizer);
}

}  // namespace kzero::detail
