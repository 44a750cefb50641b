// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/manifest.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <set>
#include <utility>

#include "core/message.hpp"
#include "io/checksum_text.hpp"
#include "io/element_count.hpp"
#include "io/layout_json.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

constexpr std::string_view format_name = "kzero";

std::string quoted_json(std::string_view name) {
  const std::string link = link_name(name);
  // What JSON escapes of what a link name can have.
  if (link.find_first_of("\"\\\x7f") != link.npos) return Json(link).dump();
  return concat('"', link, '"');
}

void put_list(std::string& text, const std::vector<std::int64_t>& values) {
  text += '[';
  for (const std::int64_t value : values) {
    if (text.back() != '[') text += ',';
    text += std::to_string(value);
  }
  text += ']';
}

void put_array(std::string& text, std::string_view name, std::string_view type,
               const StoredArray& stored) {
  text += '[';
  text += quoted_json(name);
  text += concat(",\"", type, "\",", stored.place, ",\"",
                 checksum_text(stored.sum), "\"]");
}

// By hand: there can be very many.
void put_parameter(std::string& text, const ParameterLayout& parameter,
                   const std::vector<StoredArray>& arrays) {
  text += '[';
  text += quoted_json(parameter.name);
  text += ',';
  text += quoted_json(parameter.group);
  text += ',';
  text += std::to_string(parameter.update_count);
  text += ',';
  put_list(text, parameter.extents);
  text += ",[";
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (i > 0) text += ',';
    put_array(text, parameter.arrays[i].name,
              to_string(parameter.arrays[i].dtype), arrays[i]);
  }
  text += "]]\n";
}

std::string_view type_name(std::int64_t) { return "int64"; }
std::string_view type_name(double) { return "float64"; }
std::string_view type_name(float) { return "float32"; }

/// The entry of a value of the caller's.
struct UserEntry {
  StoredArray stored;

  Json operator()(std::int64_t value) const {
    return {{"type", "int64"}, {"value", value}};
  }
  Json operator()(double value) const {
    return {{"type", "float64"}, {"value", json_of(value)}};
  }
  Json operator()(const std::string& value) const {
    return {{"type", "text"}, {"value", link_name(value)}};
  }
  Json operator()(const std::vector<std::string>& values) const {
    Json list = Json::array();
    for (const std::string& value : values) list.push_back(link_name(value));
    return {{"type", "texts"}, {"values", std::move(list)}};
  }
  template <class T>
  Json operator()(const UserArray<T>& array) const {
    return {{"type", type_name(T{})},
            {"extents", array.extents},
            {"place", stored.place},
            {"checksum", checksum_text(stored.sum)}};
  }
};

template <class T>
UserValue array_with(std::vector<std::int64_t> extents) {
  return UserArray<T>{std::move(extents), {}};
}

UserValue user_array(const JsonNode& node, const std::string& type) {
  std::vector<std::int64_t> extents = node.at("extents").integers();
  if (extents.empty() || element_count(extents) < 0)
    throw InvalidArgument(concat(node.path(), " has an impossible shape"));
  if (type == type_name(std::int64_t{}))
    return array_with<std::int64_t>(std::move(extents));
  if (type == type_name(double{}))
    return array_with<double>(std::move(extents));
  if (type == type_name(float{})) return array_with<float>(std::move(extents));
  throw InvalidArgument(
      concat(node.path(), " has the unknown type ", detail::quoted(type)));
}

void read_user_entry(const JsonNode& node, const std::string& name,
                     StoredLayout& stored) {
  UserValue& value = stored.layout.content.user[name];
  const std::string type = node.at("type").text();
  if (type == "text") {
    value = name_of_link(node.at("value").text());
  } else if (type == "texts") {
    std::vector<std::string> texts;
    for (const JsonNode& each : node.at("values").list())
      texts.push_back(name_of_link(each.text()));
    value = std::move(texts);
  } else if (node.has("extents")) {
    value = user_array(node, type);
    if (array_bytes(value) > 0)
      stored.user[name] = {node.at("place").integer(),
                           checksum_of(node.at("checksum"))};
  } else if (type == type_name(std::int64_t{})) {
    value = node.at("value").integer();
  } else if (type == type_name(double{})) {
    value = node.at("value").number();
  } else {
    throw InvalidArgument(
        concat(node.path(), " has the unknown type ", detail::quoted(type)));
  }
}

DType dtype_of(const JsonNode& node) {
  const std::string name = node.text();
  for (const DType dtype :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64})
    if (name == to_string(dtype)) return dtype;
  throw InvalidArgument(concat(node.path(), " is ", detail::quoted(name),
                               ", expected a number type"));
}

void read_parameter(const JsonNode& node, StoredLayout& stored) {
  const std::vector<JsonNode> parts = node.list();
  if (parts.size() < 5)
    throw InvalidArgument(concat(
        node.path(), " has not name, group, update count, extents and arrays"));
  ParameterLayout parameter;
  parameter.name = name_of_link(parts[0].text());
  parameter.group = name_of_link(parts[1].text());
  parameter.update_count = parts[2].integer();
  parameter.extents = parts[3].integers();
  if (element_count(parameter.extents) < 0)
    throw InvalidArgument(
        concat(node.path(), " has the impossible shape ",
               std::span<const std::int64_t>(parameter.extents)));
  std::vector<StoredArray> arrays;
  for (const JsonNode& array : parts[4].list()) {
    const std::vector<JsonNode> of_array = array.list();
    if (of_array.size() < 4)
      throw InvalidArgument(
          concat(array.path(), " has not name, type, place and checksum"));
    parameter.arrays.push_back(
        {name_of_link(of_array[0].text()), dtype_of(of_array[1])});
    arrays.push_back({of_array[2].integer(), checksum_of(of_array[3])});
  }
  if (parameter.arrays.empty() || parameter.arrays.front().name != "value")
    throw InvalidArgument(concat(node.path(), " does not begin with a value"));
  stored.layout.parameters.push_back(std::move(parameter));
  stored.arrays.push_back(std::move(arrays));
}

void require_names_once(const FileLayout& layout) {
  std::set<std::string_view> names;
  for (const ParameterLayout& parameter : layout.parameters) {
    if (!names.insert(parameter.name).second)
      throw InvalidArgument(concat("two parameters have the name ",
                                   detail::quoted(parameter.name)));
    std::set<std::string_view> arrays;
    for (const ArrayLayout& array : parameter.arrays)
      if (!arrays.insert(array.name).second)
        throw InvalidArgument(
            concat("the parameter ", detail::quoted(parameter.name),
                   " has two arrays ", detail::quoted(array.name)));
  }
}

void require_apart(const StoredLayout& stored, const FileHeader& header) {
  std::vector<Stretch> all = array_stretches(stored);
  all.push_back({header.manifest_place, header.manifest_bytes});
  std::ranges::sort(all, {}, &Stretch::place);
  std::int64_t end = header_bytes;
  for (const Stretch& each : all) {
    if (each.place < end || each.bytes > header.file_bytes - each.place)
      throw InvalidArgument(
          concat("an array lies at byte ", each.place, " with ", each.bytes,
                 " bytes, where another one, the header or no file is"));
    end = each.place + each.bytes;
  }
}

void read_head(const JsonNode& root, StoredLayout& stored) {
  require_format(root, format_name, format_major);
  FileLayout& layout = stored.layout;
  layout.content.step = root.at("step").integer();
  layout.content.world_size = root.at("world_size").integer();
  layout.content.library_version = root.at("library_version").text();
  layout.content.created = root.at("created").text();
  layout.skipped_total = root.at("skipped_total").integer();
  layout.skipped_in_a_row = root.at("skipped_in_a_row").integer();
  layout.groups = groups_of(root.at("groups"));
  if (root.has("scaler")) layout.scaler = scaler_of(root.at("scaler"));
  root.at("user").for_each([&](const std::string& name, const JsonNode& node) {
    read_user_entry(node, name, stored);
  });
}

/// The first line, which is taken off the text.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string manifest_text(const StoredLayout& stored) {
  const FileLayout& layout = stored.layout;
  Json head = {{"format", format_name},
               {"format_version", Json::array({format_major, format_minor})},
               {"step", layout.content.step},
               {"world_size", layout.content.world_size},
               {"library_version", layout.content.library_version},
               {"created", layout.content.created},
               {"skipped_total", layout.skipped_total},
               {"skipped_in_a_row", layout.skipped_in_a_row},
               {"groups", json_of(layout.groups)}};
  if (layout.scaler) head["scaler"] = json_of(*layout.scaler);
  Json user = Json::object();
  for (const auto& [name, value] : layout.content.user) {
    const auto place = stored.user.find(name);
    user[link_name(name)] = std::visit(
        UserEntry{place == stored.user.end() ? StoredArray() : place->second},
        value);
  }
  head["user"] = std::move(user);
  std::string text = head.dump();
  text += '\n';
  for (std::size_t i = 0; i < layout.parameters.size(); ++i)
    put_parameter(text, layout.parameters[i], stored.arrays[i]);
  return text;
}

StoredLayout read_manifest(std::string_view text, const FileHeader& header) {
  try {
    StoredLayout stored;
    read_head(JsonNode(parse_json(take_line(text)), ""), stored);
    for (std::size_t line = 2; !text.empty(); ++line)
      read_parameter(
          JsonNode(Json::parse(take_line(text)), concat("line ", line)),
          stored);
    require_names_once(stored.layout);
    require_apart(stored, header);
    return stored;
  } catch (const std::exception& error) {
    throw CheckpointError(concat("its manifest is not valid: ", error.what()));
  }
}

}  // namespace kzero::detail
