// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/error.hpp>
#include <kzero/state_json.hpp>
#include <unordered_map>
#include <utility>

#include "core/log.hpp"
#include "core/message.hpp"
#include "io/layout_json.hpp"
#include "io/link_name.hpp"
#include "io/restored_numbers.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

namespace {

using namespace detail;

constexpr std::string_view format_name = "kzero state";
constexpr std::int64_t major_version = 1;
constexpr std::int64_t minor_version = 1;

Json json_of(const FileLayout& layout) {
  Json counts = Json::object();
  for (const ParameterLayout& parameter : layout.parameters)
    counts[link_name(parameter.name)] = parameter.update_count;
  Json json = {{"format", format_name},
               {"format_version", {major_version, minor_version}},
               {"library_version", layout.content.library_version},
               {"steps", layout.content.step},
               {"skipped_total", layout.skipped_total},
               {"skipped_in_a_row", layout.skipped_in_a_row},
               {"groups", json_of(layout.groups)},
               {"update_counts", std::move(counts)}};
  if (layout.scaler) json["scaler"] = json_of(*layout.scaler);
  return json;
}

/// What the text does not say of its parameters is as in the model.
std::vector<ParameterLayout> parameters_of(const JsonNode& root,
                                           const FileLayout& model) {
  std::unordered_map<std::string_view, const ParameterLayout*> known;
  for (const ParameterLayout& each : model.parameters)
    known.emplace(each.name, &each);
  std::vector<ParameterLayout> parameters;
  root.at("update_counts")
      .for_each([&](const std::string& name, const JsonNode& count) {
        ParameterLayout parameter;
        parameter.name = name;
        const auto place = known.find(parameter.name);
        if (place != known.end()) parameter = *place->second;
        parameter.update_count = count.integer();
        parameters.push_back(std::move(parameter));
      });
  return parameters;
}

/// The lines of the text: where the ranks' differ, the message names one.
FactSource lines_of(std::string_view text) {
  return [text](const auto& fact) {
    std::int64_t line = 0;
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      fact(concat("line ", ++line, " of the state"),
           text.substr(begin, end - begin));
      begin = end + 1;
    }
  };
}

}  // namespace

namespace detail {

FileLayout layout_of_state(std::string_view text, const FileLayout& model) {
  const Json json = parse_json(text);
  const JsonNode root(json, "");
  require_format(root, format_name, major_version);
  FileLayout layout;
  layout.content.step = root.at("steps").integer();
  layout.skipped_total = root.at("skipped_total").integer();
  layout.skipped_in_a_row = root.at("skipped_in_a_row").integer();
  layout.groups = groups_of(root.at("groups"));
  layout.parameters = parameters_of(root, model);
  layout.scaler = scaler_of(root.at("scaler"));
  if (!is_kind(layout.scaler->kind))
    throw InvalidArgument(
        concat("/scaler/kind is ", detail::quoted(layout.scaler->kind),
               ", expected \"none\", \"constant\" or \"dynamic\""));
  return layout;
}

}  // namespace detail

std::string state_json(const ShardedOptimizer& optimizer) {
  return json_of(layout_of(optimizer, {})).dump(2);
}

void load_state_json(ShardedOptimizer& optimizer, std::string_view json) {
  const char* const name = "load_state_json";
  RestoredNumbers numbers;
  std::string problem;
  try {
    OptimizerAccess::synchronize(optimizer, name);
    const FileLayout model = layout_of(optimizer, {});
    numbers = restored_numbers(optimizer, model, layout_of_state(json, model),
                               {}, Medium::text);
  } catch (const std::exception& error) {
    problem = concat(name, ": ", error.what());
  }
  Communicator& communicator = *optimizer.communicator();
  require_agreement(communicator, {name}, lines_of(json), problem);
  restore(optimizer, numbers);
  if (communicator.rank() != 0) return;
  for (const std::string& warning : numbers.warnings)
    log(LogLevel::warning, concat(name, ": ", warning));
}

}  // namespace kzero
