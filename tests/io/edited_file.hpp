// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checkpoint files with right checksums that say what no writer of ours would.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "io/checksum.hpp"
#include "io/manifest.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {

using Json = nlohmann::json;

/// The same header over other texts.
inline std::string sealed(std::string text) {
  const std::size_t rest = std::string("kzero checkpoint ").size() + 16;
  const std::uint64_t sum = detail::checksum(
      0, text.data() + rest, std::ssize(text) - std::int64_t(rest));
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(sum));
  return text.replace(rest - 16, 16, digits);
}

/// Puts another header's text in the place of the file's.
inline void edit_header(const std::filesystem::path& path,
                        const std::function<void(Json&)>& edit) {
  std::string bytes = file_bytes(path);
  std::string head = bytes.substr(0, detail::header_bytes);
  const std::size_t begin = head.find('{');
  Json json = Json::parse(head.substr(begin));
  edit(json);
  std::string text = json.dump();
  text.resize(head.size() - begin, ' ');
  bytes.replace(0, head.size(), sealed(head.substr(0, begin) + text));
  write_bytes(path, bytes);
}

/// Puts a manifest of this text at the end of the file.
inline void replace_manifest(const std::filesystem::path& path,
                             const std::string& text) {
  std::string bytes = file_bytes(path);
  const auto place = std::ssize(bytes);
  bytes += text;
  write_bytes(path, bytes);
  std::uint64_t metadata = 0;
  try {
    detail::FileHeader header{std::ssize(bytes), place, std::ssize(text), 0, 0};
    for (const detail::Stretch& each : detail::metadata_stretches(
             detail::read_manifest(text, header), header))
      metadata +=
          detail::checksum(each.place, bytes.data() + each.place, each.bytes);
  } catch (const std::exception&) {
    // What is no manifest is refused before anything else is read.
  }
  edit_header(path, [&](Json& json) {
    char digits[17];
    const auto hex = [&](std::uint64_t sum) {
      std::snprintf(digits, sizeof digits, "%016llx",
                    static_cast<unsigned long long>(sum));
      return std::string(digits);
    };
    json["file_bytes"] = bytes.size();
    json["manifest"] = {
        {"place", place},
        {"bytes", text.size()},
        {"checksum", hex(detail::checksum(0, text.data(), std::ssize(text)))}};
    json["metadata"]["checksum"] = hex(metadata);
  });
}

/// After HDF5's part was edited: header and manifest say so of all that is
/// there now.
inline void seal_metadata(const std::filesystem::path& path) {
  const std::string bytes = file_bytes(path);
  detail::FileHeader header =
      detail::read_header(bytes.substr(0, detail::header_bytes));
  header.file_bytes = std::ssize(bytes);
  const std::string_view manifest(
      bytes.data() + header.manifest_place,
      static_cast<std::size_t>(header.manifest_bytes));
  header.metadata_sum = 0;
  for (const detail::Stretch& each : detail::metadata_stretches(
           detail::read_manifest(manifest, header), header))
    header.metadata_sum +=
        detail::checksum(each.place, bytes.data() + each.place, each.bytes);
  write_bytes(path, detail::header_text(header) +
                        bytes.substr(std::size_t(detail::header_bytes)));
}

inline std::string manifest_of(const std::filesystem::path& path) {
  const std::string bytes = file_bytes(path);
  const detail::FileHeader header =
      detail::read_header(bytes.substr(0, detail::header_bytes));
  return bytes.substr(std::size_t(header.manifest_place),
                      std::size_t(header.manifest_bytes));
}

/// The head of a manifest with its parameters as objects of a list, which can
/// have a member "new" as well.
inline void edit_manifest(const std::filesystem::path& path,
                          const std::function<void(Json&)>& edit) {
  constexpr const char* members[] = {"name", "group", "update_count", "extents",
                                     "arrays"};
  std::istringstream lines(manifest_of(path));
  std::string line;
  std::getline(lines, line);
  Json json = Json::parse(line);
  json["parameters"] = Json::array();
  while (std::getline(lines, line)) {
    const Json list = Json::parse(line);
    Json parameter;
    for (std::size_t i = 0; i < 5; ++i) parameter[members[i]] = list[i];
    json["parameters"].push_back(parameter);
  }
  edit(json);
  std::string rest;
  for (const Json& parameter : json["parameters"]) {
    Json list = Json::array();
    for (const char* member : members) list.push_back(parameter[member]);
    if (parameter.contains("new")) list.push_back(parameter["new"]);
    rest += list.dump() + "\n";
  }
  json.erase("parameters");
  replace_manifest(path, json.dump() + "\n" + rest);
}

}  // namespace kzero::test
