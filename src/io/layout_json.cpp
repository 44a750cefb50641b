// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/layout_json.hpp"

#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

Json json_of_group(const GroupLayout& group) {
  Json hyperparameters = Json::object();
  for (const auto& [name, value] : group.hyperparameters)
    hyperparameters[link_name(name)] = json_of(value);
  return {{"rule", link_name(group.rule)},
          {"hyperparameters", std::move(hyperparameters)}};
}

}  // namespace

Json json_of(const std::vector<GroupLayout>& groups) {
  Json json = Json::object();
  for (const GroupLayout& group : groups)
    json[link_name(group.name)] = json_of_group(group);
  return json;
}

std::vector<GroupLayout> groups_of(const JsonNode& node) {
  std::vector<GroupLayout> groups;
  node.for_each([&](const std::string& name, const JsonNode& group_node) {
    GroupLayout group{name, name_of_link(group_node.at("rule").text()), {}};
    group_node.at("hyperparameters")
        .for_each([&](const std::string& hyperparameter,
                      const JsonNode& value) {
          group.hyperparameters.emplace_back(hyperparameter, value.number());
        });
    groups.push_back(std::move(group));
  });
  return groups;
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

ScalerLayout scaler_of(const JsonNode& node) {
  ScalerLayout scaler{node.at("kind").text(), {}};
  if (!is_kind(scaler.kind)) return scaler;
  scaler.state = {node.at("scale").number(), node.at("good_steps").integer(),
                  node.at("hysteresis_left").integer()};
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

void require_format(const JsonNode& root, std::string_view format,
                    std::int64_t major) {
  const std::string found = root.at("format").text();
  if (found != format)
    throw InvalidArgument(concat("the format is ", detail::quoted(found),
                                 ", expected ", detail::quoted(format)));
  const auto version = root.at("format_version").integers();
  if (version.size() != 2 || version[0] < 1)
    throw InvalidArgument(concat("the format version is ",
                                 std::span<const std::int64_t>(version),
                                 ", expected a major one from 1 on, and a "
                                 "minor one"));
  if (version[0] > major)
    throw InvalidArgument(concat("it has the format version ", version[0], '.',
                                 version[1],
                                 ", this library reads versions up to ", major,
                                 ".x: load it with a newer kzero"));
}

}  // namespace kzero::detail
