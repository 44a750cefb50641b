// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <array>
#include <cmath>
#include <kzero/error.hpp>
#include <kzero/state_json.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/log.hpp"
#include "core/message.hpp"
#include "io/file_layout.hpp"
#include "io/link_name.hpp"
#include "io/restored_numbers.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

namespace {

using namespace detail;
using Json = nlohmann::json;

constexpr std::string_view format_name = "kzero state";
constexpr std::int64_t major_version = 1;
constexpr std::int64_t minor_version = 1;

// JSON has no such numbers.
const std::array<std::pair<std::string, double>, 3> special_numbers = {
    {{"NaN", std::numeric_limits<double>::quiet_NaN()},
     {"Infinity", std::numeric_limits<double>::infinity()},
     {"-Infinity", -std::numeric_limits<double>::infinity()}}};

Json json_of(double value) {
  if (std::isnan(value)) return special_numbers[0].first;
  if (std::isinf(value)) return special_numbers[value > 0 ? 1 : 2].first;
  return value;
}

Json json_of(const GroupLayout& group) {
  Json hyperparameters = Json::object();
  for (const auto& [name, value] : group.hyperparameters)
    hyperparameters[link_name(name)] = json_of(value);
  return {{"rule", link_name(group.rule)},
          {"hyperparameters", std::move(hyperparameters)}};
}

Json json_of(const ScalerLayout& scaler) {
  Json json = {{"kind", scaler.kind},
               {"scale", json_of(scaler.state.scale)},
               {"good_steps", scaler.state.good_steps},
               {"hysteresis_left", scaler.state.hysteresis_left}};
  if (!scaler.scaling) return json;
  const DynamicScaler& scaling = *scaler.scaling;
  json["growth"] = json_of(scaling.growth);
  json["backoff"] = json_of(scaling.backoff);
  json["growth_interval"] = scaling.growth_interval;
  json["hysteresis"] = scaling.hysteresis;
  json["minimum"] = json_of(scaling.minimum);
  return json;
}

Json json_of(const FileLayout& layout) {
  Json groups = Json::object();
  for (const GroupLayout& group : layout.groups)
    groups[link_name(group.name)] = json_of(group);
  Json counts = Json::object();
  for (const ParameterLayout& parameter : layout.parameters)
    counts[link_name(parameter.name)] = parameter.update_count;
  Json json = {{"format", format_name},
               {"format_version", {major_version, minor_version}},
               {"library_version", layout.content.library_version},
               {"steps", layout.content.step},
               {"skipped_total", layout.skipped_total},
               {"skipped_in_a_row", layout.skipped_in_a_row},
               {"groups", std::move(groups)},
               {"update_counts", std::move(counts)}};
  if (layout.scaler) json["scaler"] = json_of(*layout.scaler);
  return json;
}

/// A value of the text and the way to it, for messages.
class Node {
 public:
  Node(const Json& json, std::string path)
      : json_(json), path_(std::move(path)) {}

  Node at(const std::string& key) const {
    require(json_.is_object(), "an object");
    const auto place = json_.find(key);
    if (place == json_.end())
      throw InvalidArgument(concat(path_, " has no ", detail::quoted(key)));
    return {*place, concat(path_, "/", key)};
  }

  bool has(const std::string& key) const { return json_.contains(key); }

  /// Calls f(name, node) for each member of an object, whose keys are written
  /// as links are. Throws where two keys stand for one name.
  template <class F>
  void for_each(F&& f) const {
    require(json_.is_object(), "an object");
    std::set<std::string> names;
    for (const auto& [key, value] : json_.items()) {
      const std::string name = name_of_link(key);
      if (!names.insert(name).second)
        throw InvalidArgument(concat(path_, " has ", detail::quoted(name),
                                     " twice, once as ", detail::quoted(key)));
      f(name, Node(value, concat(path_, "/", key)));
    }
  }

  std::string text() const {
    require(json_.is_string(), "a string");
    return json_.get<std::string>();
  }

  std::int64_t integer() const {
    // An unsigned number is one that has no sign: it can be past the range.
    require(json_.is_number_integer() &&
                (!json_.is_number_unsigned() ||
                 json_.get<std::uint64_t>() <=
                     std::uint64_t{std::numeric_limits<std::int64_t>::max()}),
            "an integer");
    return json_.get<std::int64_t>();
  }

  double number() const {
    for (const auto& [name, value] : special_numbers)
      if (json_ == name) return value;
    require(json_.is_number(), "a number");
    return json_.get<double>();
  }

  std::vector<std::int64_t> integers() const {
    require(json_.is_array(), "a list");
    std::vector<std::int64_t> values;
    for (const Json& each : json_)
      values.push_back(Node(each, path_).integer());
    return values;
  }

 private:
  void require(bool holds, std::string_view expected) const {
    if (holds) return;
    throw InvalidArgument(
        concat(path_, " is ", described(), ", expected ", expected));
  }

  std::string described() const {
    // dump() calls itself for what is inside, however deep that is.
    if (json_.is_structured()) return concat("an ", json_.type_name());
    std::string text =
        json_.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 40) + "...";
    return text;
  }

  const Json& json_;
  std::string path_;
};

void require_format(const Node& root) {
  const std::string format = root.at("format").text();
  if (format != format_name)
    throw InvalidArgument(concat("the format is ", detail::quoted(format),
                                 ", expected ", detail::quoted(format_name)));
  const auto version = root.at("format_version").integers();
  if (version.size() != 2 || version[0] < 1)
    throw InvalidArgument(concat("the format version is ",
                                 std::span<const std::int64_t>(version),
                                 ", expected a major one from 1 on, and a "
                                 "minor one"));
  if (version[0] > major_version)
    throw InvalidArgument(
        concat("it has the format version ", version[0], '.', version[1],
               ", this library reads versions up to ", major_version,
               ".x: load it with a newer kzero"));
}

std::vector<GroupLayout> groups_of(const Node& root) {
  std::vector<GroupLayout> groups;
  root.at("groups").for_each([&](const std::string& name, const Node& node) {
    GroupLayout group{name, name_of_link(node.at("rule").text()), {}};
    node.at("hyperparameters")
        .for_each([&](const std::string& hyperparameter, const Node& value) {
          group.hyperparameters.emplace_back(hyperparameter, value.number());
        });
    groups.push_back(std::move(group));
  });
  return groups;
}

/// What the text does not say of its parameters is as in the model.
std::vector<ParameterLayout> parameters_of(const Node& root,
                                           const FileLayout& model) {
  std::unordered_map<std::string_view, const ParameterLayout*> known;
  for (const ParameterLayout& each : model.parameters)
    known.emplace(each.name, &each);
  std::vector<ParameterLayout> parameters;
  root.at("update_counts")
      .for_each([&](const std::string& name, const Node& count) {
        ParameterLayout parameter;
        parameter.name = name;
        const auto place = known.find(parameter.name);
        if (place != known.end()) parameter = *place->second;
        parameter.update_count = count.integer();
        parameters.push_back(std::move(parameter));
      });
  return parameters;
}

ScalerLayout scaler_of(const Node& node) {
  ScalerLayout scaler{
      node.at("kind").text(),
      {node.at("scale").number(), node.at("good_steps").integer(),
       node.at("hysteresis_left").integer()}};
  if (!is_kind(scaler.kind))
    throw InvalidArgument(
        concat("/scaler/kind is ", detail::quoted(scaler.kind),
               ", expected \"none\", \"constant\" or \"dynamic\""));
  if (scaler.kind != kind_name(Scaler::Kind::dynamic) || !node.has("growth"))
    return scaler;
  DynamicScaler scaling;
  scaling.growth = node.at("growth").number();
  scaling.backoff = node.at("backoff").number();
  scaling.growth_interval = node.at("growth_interval").integer();
  scaling.hysteresis = node.at("hysteresis").integer();
  scaling.minimum = node.at("minimum").number();
  scaler.scaling = scaling;
  return scaler;
}

/// Throws for a key that an object has twice: Json would keep the last.
Json parsed(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the open objects
  return Json::parse(text, [&](int, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key &&
        !keys.back().insert(value.get<std::string>()).second)
      throw InvalidArgument(concat("an object has the key ",
                                   detail::quoted(value.get<std::string>()),
                                   " twice"));
    return true;
  });
}

FileLayout layout_of_text(std::string_view text, const FileLayout& model) {
  const Json json = parsed(text);
  const Node root(json, "");
  require_format(root);
  FileLayout layout;
  layout.content.step = root.at("steps").integer();
  layout.skipped_total = root.at("skipped_total").integer();
  layout.skipped_in_a_row = root.at("skipped_in_a_row").integer();
  layout.groups = groups_of(root);
  layout.parameters = parameters_of(root, model);
  layout.scaler = scaler_of(root.at("scaler"));
  return layout;
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
    numbers = restored_numbers(optimizer, model, layout_of_text(json, model),
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
