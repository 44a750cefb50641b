// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/manifest.hpp"

#include <algorithm>
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

/// The first line.
Json head_of(const StoredLayout& stored) {
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
  return head;
}

}  // namespace

Manifest::Manifest(const StoredLayout& stored) {
  const FileLayout& layout = stored.layout;
  text_ = head_of(stored).dump();
  text_ += '\n';
  sums_.reserve(stored.arrays.all().size());
  for (std::size_t i = 0; i < layout.parameters.size(); ++i)
    put_parameter(layout.parameters[i], stored.arrays[i]);
}

void Manifest::put_sums(const ByArray<StoredArray>& arrays) {
  for (std::size_t i = 0; i < sums_.size(); ++i)
    write_checksum(arrays.all()[i].sum, &text_[sums_[i]]);
}

// By hand: there can be very many.
void Manifest::put_parameter(const ParameterLayout& parameter,
                             std::span<const StoredArray> arrays) {
  text_ += '[';
  put_name(text_, parameter.name);
  text_ += ',';
  put_name(text_, parameter.group);
  text_ += ',';
  append(text_, parameter.update_count);
  text_ += ",[";
  for (std::size_t i = 0; i < parameter.extents.size(); ++i) {
    if (i > 0) text_ += ',';
    append(text_, parameter.extents[i]);
  }
  text_ += "],[";
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (i > 0) text_ += ',';
    put_array(parameter.arrays[i], arrays[i]);
  }
  text_ += "]]\n";
}

void Manifest::put_array(const ArrayLayout& array, const StoredArray& stored) {
  text_ += '[';
  put_name(text_, array.name);
  text_ += ",\"";
  text_ += to_string(array.dtype);
  text_ += "\",";
  append(text_, stored.place);
  text_ += ",\"";
  sums_.push_back(text_.size());
  text_.append(checksum_digits, '0');
  write_checksum(stored.sum, &text_[sums_.back()]);
  text_ += "\"]";
}

}  // namespace kzero::detail
