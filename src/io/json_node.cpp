// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/json_node.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <kzero/error.hpp>
#include <limits>
#include <set>
#include <utility>

#include "core/message.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

constexpr std::size_t deepest = 16;

const std::array<std::pair<std::string, double>, 3> special_numbers = {
    {{"NaN", std::numeric_limits<double>::quiet_NaN()},
     {"Infinity", std::numeric_limits<double>::infinity()},
     {"-Infinity", -std::numeric_limits<double>::infinity()}}};

}  // namespace

Json json_of(double value) {
  if (std::isnan(value)) return special_numbers[0].first;
  if (std::isinf(value)) return special_numbers[value > 0 ? 1 : 2].first;
  return value;
}

Json parse_json(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the open objects
  std::size_t depth = 0;
  return Json::parse(text, [&](int, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start)
      if (++depth > deepest)
        throw InvalidArgument(
            concat("the text is nested deeper than ", deepest, " levels"));
    if (event == Event::object_end || event == Event::array_end) --depth;
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

JsonNode JsonNode::at(const std::string& key) const {
  require(json_.is_object(), "an object");
  const auto place = json_.find(key);
  if (place == json_.end())
    throw InvalidArgument(concat(path_, " has no ", detail::quoted(key)));
  return {*place, concat_path(key)};
}

std::vector<std::pair<std::string, std::string>> JsonNode::names() const {
  require(json_.is_object(), "an object");
  std::vector<std::pair<std::string, std::string>> names;
  std::set<std::string> known;
  for (const auto& [key, value] : json_.items()) {
    std::string name = name_of_link(key);
    if (!known.insert(name).second)
      throw InvalidArgument(concat(path_, " has ", detail::quoted(name),
                                   " twice, once as ", detail::quoted(key)));
    names.emplace_back(key, std::move(name));
  }
  return names;
}

std::string JsonNode::concat_path(const std::string& key) const {
  return concat(path_, "/", key);
}

std::string JsonNode::text() const {
  require(json_.is_string(), "a string");
  return json_.get<std::string>();
}

std::int64_t JsonNode::integer() const {
  // An unsigned number is one that has no sign: it can be past the range.
  require(json_.is_number_integer() &&
              (!json_.is_number_unsigned() ||
               json_.get<std::uint64_t>() <=
                   std::uint64_t{std::numeric_limits<std::int64_t>::max()}),
          "an integer");
  return json_.get<std::int64_t>();
}

double JsonNode::number() const {
  for (const auto& [name, value] : special_numbers)
    if (json_ == name) return value;
  require(json_.is_number(), "a number");
  return json_.get<double>();
}

bool JsonNode::truth() const {
  require(json_.is_boolean(), "true or false");
  return json_.get<bool>();
}

void JsonNode::require_known(
    std::initializer_list<std::string_view> keys) const {
  require(json_.is_object(), "an object");
  for (const auto& member : json_.items())
    if (std::ranges::find(keys, member.key()) == keys.end())
      throw InvalidArgument(concat(path_, " has ", detail::quoted(member.key()),
                                   ", which is not known there"));
}

std::vector<std::int64_t> JsonNode::integers() const {
  require(json_.is_array(), "a list");
  std::vector<std::int64_t> values;
  for (const Json& each : json_)
    values.push_back(JsonNode(each, path_).integer());
  return values;
}

std::vector<JsonNode> JsonNode::list() const {
  require(json_.is_array(), "a list");
  std::vector<JsonNode> nodes;
  nodes.reserve(json_.size());
  for (const Json& each : json_) nodes.emplace_back(each, path_);
  return nodes;
}

void JsonNode::require(bool holds, std::string_view expected) const {
  if (holds) return;
  throw InvalidArgument(
      concat(path_, " is ", described(), ", expected ", expected));
}

std::string JsonNode::described() const {
  // dump() calls itself for what is inside, however deep that is.
  if (json_.is_structured()) return concat("an ", json_.type_name());
  std::string text = json_.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

}  // namespace kzero::detail
