// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/restored_numbers.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <unordered_map>

#include "core/message.hpp"
#include "io/user_data_wire.hpp"
#include "io/wire.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

/// The rule with these values for its hyperparameters. Throws InvalidArgument.
Rule rule_with(Rule rule, const std::vector<double>& values) {
  const auto names = rule.hyperparameters();
  // Some are valid only together with others (nesterov with no dampening):
  // what is refused is tried again when the others have been set.
  std::vector<std::size_t> refused;
  for (std::size_t i = 0; i < names.size(); ++i) refused.push_back(i);
  while (!refused.empty()) {
    std::vector<std::size_t> again;
    for (const std::size_t i : refused) {
      try {
        rule.set(names[i], values[i]);
      } catch (const InvalidArgument&) {
        again.push_back(i);
      }
    }
    if (again.size() == refused.size())
      rule.set(names[again.front()], values[again.front()]);
    refused = std::move(again);
  }
  return rule;
}

template <class Layout>
std::unordered_map<std::string_view, const Layout*> by_name(
    const std::vector<Layout>& layouts) {
  std::unordered_map<std::string_view, const Layout*> map;
  for (const Layout& each : layouts) map.emplace(each.name, &each);
  return map;
}

double value_of(const GroupLayout& group, std::string_view hyperparameter) {
  return std::ranges::find(
             group.hyperparameters, hyperparameter,
             [](const auto& each) { return std::string_view(each.first); })
      ->second;
}

RestoredNumbers take_numbers(const ShardedOptimizer& optimizer,
                             const FileLayout& model, const FileLayout& file) {
  require_match(model, file);
  RestoredNumbers numbers;
  numbers.content = file.content;
  numbers.skipped_total = file.skipped_total;
  numbers.skipped_in_a_row = file.skipped_in_a_row;
  if (file.content.step < 0 || file.skipped_total < 0 ||
      file.skipped_in_a_row < 0)
    throw CheckpointError("its count of steps is negative");
  const auto parameters = by_name(file.parameters);
  for (const ParameterLayout& each : model.parameters) {
    const std::int64_t count = parameters.at(each.name)->update_count;
    if (count < 0)
      throw CheckpointError(concat("the update count of ",
                                   detail::quoted(each.name), " is negative"));
    numbers.update_counts.push_back(count);
  }
  const auto groups = by_name(file.groups);
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    const GroupLayout& group = *groups.at(model.groups[g].name);
    std::vector<double> values;
    for (const auto& [name, mine] : model.groups[g].hyperparameters)
      values.push_back(value_of(group, name));
    try {
      rule_with(OptimizerAccess::rule(optimizer, g), values);
    } catch (const InvalidArgument& error) {
      throw CheckpointError(
          concat("group ", detail::quoted(group.name), ": ", error.what()));
    }
    numbers.hyperparameters.push_back(std::move(values));
  }
  return numbers;
}

}  // namespace

RestoredNumbers restored_numbers(const ShardedOptimizer& optimizer,
                                 const FileLayout& model,
                                 const FileLayout& file,
                                 const std::filesystem::path& path) {
  try {
    return take_numbers(optimizer, model, file);
  } catch (const CheckpointError& error) {
    throw CheckpointError(concat("cannot load the checkpoint ",
                                 detail::quoted(path.string()), " (",
                                 error.what(), ")"));
  }
}

void broadcast(Communicator& communicator, RestoredNumbers& numbers) {
  const Subject subject{"load"};
  WireWriter writer;
  if (communicator.rank() == 0) {
    const CheckpointContent& content = numbers.content;
    writer.put(content.step);
    writer.put(numbers.skipped_total);
    writer.put(numbers.skipped_in_a_row);
    writer.put(content.world_size);
    writer.put(content.library_version);
    writer.put(content.created);
    put(writer, content.user);
    writer.put(numbers.update_counts);
    writer.put(numbers.hyperparameters);
  }
  auto size = static_cast<std::int64_t>(writer.bytes().size());
  communicator.broadcast(&size, sizeof(size), 0, subject);
  writer.bytes().resize(static_cast<std::size_t>(size));
  communicator.broadcast(writer.bytes().data(), size, 0, subject);
  if (communicator.rank() == 0) return;
  WireReader reader(writer.bytes());
  reader.take(numbers.content.step);
  reader.take(numbers.skipped_total);
  reader.take(numbers.skipped_in_a_row);
  reader.take(numbers.content.world_size);
  reader.take(numbers.content.library_version);
  reader.take(numbers.content.created);
  take(reader, numbers.content.user);
  reader.take(numbers.update_counts);
  reader.take(numbers.hyperparameters);
}

void restore(ShardedOptimizer& optimizer, const RestoredNumbers& numbers) {
  for (std::size_t g = 0; g < numbers.hyperparameters.size(); ++g)
    OptimizerAccess::set_rule(optimizer, g,
                              rule_with(OptimizerAccess::rule(optimizer, g),
                                        numbers.hyperparameters[g]));
  for (std::size_t i = 0; i < numbers.update_counts.size(); ++i)
    OptimizerAccess::set_update_count(optimizer,
                                      ParameterId{static_cast<std::int64_t>(i)},
                                      numbers.update_counts[i]);
  OptimizerAccess::set_counters(
      optimizer,
      {numbers.content.step, numbers.skipped_total, numbers.skipped_in_a_row});
}

}  // namespace kzero::detail
