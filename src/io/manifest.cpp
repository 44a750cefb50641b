// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <kzero/error.hpp>
#include <set>
#include <utility>

#include "core/message.hpp"
#include "io/checksum.hpp"
#include "io/element_count.hpp"
#include "io/layout_json.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

constexpr std::string_view format_name = "kzero";
// Some ten million arrays.
constexpr std::int64_t largest_manifest = std::int64_t{1} << 30;
constexpr std::string_view magic = "kzero checkpoint ";
constexpr std::size_t sum_digits = 16;
constexpr int hexadecimal = 16;

std::string hex(std::uint64_t value) {
  std::string text(sum_digits, '0');
  for (std::size_t i = sum_digits; value > 0; value >>= 4)
    text[--i] = "0123456789abcdef"[value & 15];
  return text;
}

std::uint64_t sum_of(const JsonNode& node) {
  const std::string text = node.text();
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, hexadecimal);
  if (result.ptr != end || result.ec != std::errc() || text != hex(value))
    throw InvalidArgument(concat(node.path(), " is ", detail::quoted(text),
                                 ", expected ", sum_digits,
                                 " hexadecimal digits"));
  return value;
}

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
  text +=
      concat(",\"", type, "\",", stored.place, ",\"", hex(stored.sum), "\"]");
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
            {"checksum", hex(stored.sum)}};
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
                           sum_of(node.at("checksum"))};
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
    arrays.push_back({of_array[2].integer(), sum_of(of_array[3])});
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

/// What both texts begin with.
Json version_json() { return Json::array({format_major, format_minor}); }

}  // namespace

std::string manifest_text(const StoredLayout& stored) {
  const FileLayout& layout = stored.layout;
  Json head = {{"format", format_name},
               {"format_version", version_json()},
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

std::string header_text(const FileHeader& header) {
  const Json json = {{"format_version", version_json()},
                     {"file_bytes", header.file_bytes},
                     {"manifest",
                      {{"place", header.manifest_place},
                       {"bytes", header.manifest_bytes},
                       {"checksum", hex(header.manifest_sum)}}},
                     {"metadata", {{"checksum", hex(header.metadata_sum)}}}};
  std::string rest = concat("\n", json.dump(1), "\n");
  rest.resize(
      static_cast<std::size_t>(header_bytes) - magic.size() - sum_digits - 1,
      ' ');
  rest += '\n';
  return concat(
      magic,
      hex(checksum(0, rest.data(), static_cast<std::int64_t>(rest.size()))),
      rest);
}

FileHeader read_header(std::string_view text) {
  if (text.size() != static_cast<std::size_t>(header_bytes) ||
      !text.starts_with(magic))
    throw CheckpointError(
        "it is no kzero checkpoint: give a file that save_checkpoint has "
        "written");
  try {
    const std::string_view rest = text.substr(magic.size() + sum_digits);
    const Json sum = text.substr(magic.size(), sum_digits);
    if (sum_of(JsonNode(sum, "the header's checksum")) !=
        checksum(0, rest.data(), static_cast<std::int64_t>(rest.size())))
      throw InvalidArgument("its checksum is wrong");
    const Json json = parse_json(rest);
    const JsonNode root(json, "");
    const auto version = root.at("format_version").integers();
    if (version.size() != 2)
      throw InvalidArgument("/format_version is no pair");
    if (version[0] > format_major)
      throw InvalidArgument(
          concat("it has the format version ", version[0], '.', version[1],
                 ", this library reads versions up to ", format_major,
                 ".x: load it with a newer kzero"));
    if (version[0] != format_major)
      throw InvalidArgument(concat("it has the format version ", version[0],
                                   '.', version[1],
                                   ", which is no longer "
                                   "read"));
    const JsonNode manifest = root.at("manifest");
    const FileHeader header{
        root.at("file_bytes").integer(), manifest.at("place").integer(),
        manifest.at("bytes").integer(), sum_of(manifest.at("checksum")),
        sum_of(root.at("metadata").at("checksum"))};
    if (header.file_bytes < header_bytes ||
        header.manifest_place < header_bytes || header.manifest_bytes < 0 ||
        header.manifest_bytes > largest_manifest ||
        header.manifest_bytes > header.file_bytes - header.manifest_place)
      throw InvalidArgument("the manifest does not lie in the file");
    return header;
  } catch (const std::exception& error) {
    throw CheckpointError(concat("its header is not valid: ", error.what()));
  }
}

std::int64_t array_bytes(const ParameterLayout& parameter, DType dtype) {
  return element_count(parameter.extents) * size_of(dtype);
}

std::int64_t array_bytes(const UserValue& value) {
  return std::visit(
      []<class T>(const T& each) -> std::int64_t {
        if constexpr (requires { each.extents; })
          return element_count(each.extents) *
                 static_cast<std::int64_t>(sizeof(each.values[0]));
        else
          return 0;
      },
      value);
}

std::vector<Stretch> array_stretches(const StoredLayout& stored) {
  std::vector<Stretch> stretches;
  const auto add = [&](std::int64_t place, std::int64_t bytes) {
    if (bytes > 0) stretches.push_back({place, bytes});
  };
  for (std::size_t i = 0; i < stored.arrays.size(); ++i) {
    const ParameterLayout& parameter = stored.layout.parameters[i];
    for (std::size_t k = 0; k < stored.arrays[i].size(); ++k)
      add(stored.arrays[i][k].place,
          array_bytes(parameter, parameter.arrays[k].dtype));
  }
  for (const auto& [name, array] : stored.user)
    add(array.place, array_bytes(stored.layout.content.user.at(name)));
  std::ranges::sort(stretches, {}, &Stretch::place);
  return stretches;
}

std::vector<Stretch> metadata_stretches(const StoredLayout& stored,
                                        const FileHeader& header) {
  std::vector<Stretch> known = array_stretches(stored);
  known.push_back({header.manifest_place, header.manifest_bytes});
  std::ranges::sort(known, {}, &Stretch::place);
  std::vector<Stretch> rest;
  std::int64_t begin = header_bytes;
  for (const Stretch& each : known) {
    if (each.place > begin) rest.push_back({begin, each.place - begin});
    begin = std::max(begin, each.place + each.bytes);
  }
  if (begin < header.file_bytes)
    rest.push_back({begin, header.file_bytes - begin});
  return rest;
}

}  // namespace kzero::detail
