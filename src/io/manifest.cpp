// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/manifest.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/message.hpp"
#include "io/checksum_text.hpp"
#include "io/layout_json.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

/// Whether a name is its own link name, and JSON has nothing to escape in it.
bool is_plain(std::string_view name) {
  return name != "." && name != ".." &&
         std::ranges::all_of(name, [](char character) {
           return character >= ' ' && character < '\x7f' && character != '/' &&
                  character != '%' && character != '"' && character != '\\';
         });
}

void put_name(std::string& text, std::string_view name) {
  if (is_plain(name)) {
    text += '"';
    text += name;
    text += '"';
  } else {
    text += Json(link_name(name)).dump();
  }
}

void put_array(std::string& text, const ArrayLayout& array,
               const StoredArray& stored) {
  text += '[';
  put_name(text, array.name);
  text += ",\"";
  text += to_string(array.dtype);
  text += "\",";
  append(text, stored.place);
  text += ",\"";
  append_checksum(text, stored.sum);
  text += "\"]";
}

// By hand: there can be very many.
void put_parameter(std::string& text, const ParameterLayout& parameter,
                   std::span<const StoredArray> arrays) {
  text += '[';
  put_name(text, parameter.name);
  text += ',';
  put_name(text, parameter.group);
  text += ',';
  append(text, parameter.update_count);
  text += ",[";
  for (std::size_t i = 0; i < parameter.extents.size(); ++i) {
    if (i > 0) text += ',';
    append(text, parameter.extents[i]);
  }
  text += "],[";
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (i > 0) text += ',';
    put_array(text, parameter.arrays[i], arrays[i]);
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

}  // namespace

std::string manifest_text(const StoredLayout& stored) {
  const FileLayout& layout = stored.layout;
  Json head = {{"format", manifest_format},
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

}  // namespace kzero::detail
