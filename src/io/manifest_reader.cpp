// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <kzero/error.hpp>
#include <memory_resource>
#include <unordered_set>
#include <utility>

#include "core/message.hpp"
#include "io/checksum_text.hpp"
#include "io/element_count.hpp"
#include "io/json_line.hpp"
#include "io/layout_json.hpp"
#include "io/link_name.hpp"
#include "io/manifest.hpp"

namespace kzero::detail {

namespace {

template <class T>
UserValue array_with(std::vector<std::int64_t> extents) {
  return UserArray<T>{std::move(extents), {}};
}

UserValue user_array(const JsonNode& node, const std::string& type) {
  std::vector<std::int64_t> extents = node.at("extents").integers();
  if (extents.empty() || element_count(extents) < 0)
    throw InvalidArgument(concat(node.path(), " has an impossible shape"));
  if (type == "int64") return array_with<std::int64_t>(std::move(extents));
  if (type == "float64") return array_with<double>(std::move(extents));
  if (type == "float32") return array_with<float>(std::move(extents));
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
  } else if (type == "int64") {
    value = node.at("value").integer();
  } else if (type == "float64") {
    value = node.at("value").number();
  } else {
    throw InvalidArgument(
        concat(node.path(), " has the unknown type ", detail::quoted(type)));
  }
}

DType dtype_of(JsonLine& line) {
  const std::string_view name = line.text();
  for (const DType dtype :
       {DType::float32, DType::bfloat16, DType::float16, DType::float64})
    if (name == to_string(dtype)) return dtype;
  line.refuse(concat("a number type before it, not ", detail::quoted(name)));
}

std::uint64_t checksum_of(JsonLine& line) {
  if (const auto sum = detail::checksum_of(line.text())) return *sum;
  line.refuse(concat(checksum_digits, " hexadecimal digits before it"));
}

/// Reads the lines of parameters.
class ParametersReader {
 public:
  explicit ParametersReader(StoredLayout& stored) : stored_(stored) {}

  void read(JsonLine line) {
    ParameterLayout parameter;
    const std::size_t parts = line.list([&](std::size_t part) {
      switch (part) {
        case 0:
          parameter.name = name_of_link(line.text());
          break;
        case 1:
          parameter.group = name_of_link(line.text());
          break;
        case 2:
          parameter.update_count = line.integer();
          break;
        case 3:
          parameter.extents = extents(line);
          break;
        case 4:
          read_arrays(line);
          break;
        default:
          line.skip();
      }
    });
    line.end();
    if (parts < 5)
      line.refuse("name, group, update count, extents and arrays before it");
    if (arrays_.empty() || arrays_.front().name != "value")
      line.refuse("a value as the first array before it");
    parameter.arrays = arrays_;
    stored_.layout.parameters.push_back(std::move(parameter));
    stored_.arrays.add(places_);
  }

 private:
  const std::vector<std::int64_t>& extents(JsonLine& line) {
    extents_.clear();
    line.list([&](std::size_t) { extents_.push_back(line.integer()); });
    if (element_count(extents_) < 0)
      line.refuse(concat("a possible shape before it, not ",
                         std::span<const std::int64_t>(extents_)));
    return extents_;
  }

  void read_arrays(JsonLine& line) {
    arrays_.clear();
    places_.clear();
    line.list([&](std::size_t) { read_array(line); });
  }

  void read_array(JsonLine& line) {
    ArrayLayout& array = arrays_.emplace_back();
    StoredArray& place = places_.emplace_back();
    const std::size_t parts = line.list([&](std::size_t part) {
      switch (part) {
        case 0:
          array.name = name_of_link(line.text());
          break;
        case 1:
          array.dtype = dtype_of(line);
          break;
        case 2:
          place.place = line.integer();
          break;
        case 3:
          place.sum = checksum_of(line);
          break;
        default:
          line.skip();
      }
    });
    if (parts < 4) line.refuse("name, type, place and checksum before it");
  }

  StoredLayout& stored_;
  // Of the last line: their memory is used again.
  std::vector<std::int64_t> extents_;
  std::vector<ArrayLayout> arrays_;
  std::vector<StoredArray> places_;
};

void require_names_once(const FileLayout& layout) {
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::unordered_set<std::string_view> names(layout.parameters.size(),
                                                  &memory);
  std::vector<std::string_view> arrays;
  for (const ParameterLayout& parameter : layout.parameters) {
    if (!names.insert(parameter.name).second)
      throw InvalidArgument(concat("two parameters have the name ",
                                   detail::quoted(parameter.name)));
    arrays.clear();
    for (const ArrayLayout& array : parameter.arrays)
      arrays.push_back(array.name);
    std::ranges::sort(arrays);
    const auto twice = std::ranges::adjacent_find(arrays);
    if (twice != arrays.end())
      throw InvalidArgument(concat("the parameter ",
                                   detail::quoted(parameter.name),
                                   " has two arrays ", detail::quoted(*twice)));
  }
}

void require_apart(const StoredLayout& stored, const FileHeader& header) {
  std::int64_t end = header_bytes;
  for (const Stretch& each : known_stretches(stored, header)) {
    if (each.place < end || each.bytes > header.file_bytes - each.place)
      throw InvalidArgument(
          concat("an array lies at byte ", each.place, " with ", each.bytes,
                 " bytes, where another one, the header or no file is"));
    end = each.place + each.bytes;
  }
}

void read_head(const JsonNode& root, StoredLayout& stored) {
  require_format(root, manifest_format, format_major);
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

StoredLayout read_manifest(std::string_view text, const FileHeader& header) {
  try {
    StoredLayout stored;
    read_head(JsonNode(parse_json(take_line(text)), ""), stored);
    ParametersReader parameters(stored);
    for (std::int64_t line = 2; !text.empty(); ++line)
      parameters.read(JsonLine(take_line(text), line));
    require_names_once(stored.layout);
    require_apart(stored, header);
    return stored;
  } catch (const std::exception& error) {
    throw CheckpointError(concat("its manifest is not valid: ", error.what()));
  }
}

}  // namespace kzero::detail
