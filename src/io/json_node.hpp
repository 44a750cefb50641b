// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// JSON as kzero reads and writes it: strict, and with messages that say where.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kzero::detail {

using Json = nlohmann::json;

/// A number; one that is not finite is a string, since JSON has none.
Json json_of(double value);

/// Throws for a key that an object has twice (Json would keep the last), for
/// what is no JSON, and for what is nested deeper than any of our texts.
Json parse_json(std::string_view text);

/// A value of a text and the way to it, for messages. All members throw
/// InvalidArgument for what is not as asked for.
class JsonNode {
 public:
  JsonNode(const Json& json, std::string path)
      : json_(json), path_(std::move(path)) {}

  JsonNode at(const std::string& key) const;
  bool has(const std::string& key) const { return json_.contains(key); }

  /// Calls f(name, node) for each member of an object, whose keys are written
  /// as links are. Throws where two keys stand for one name.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [key, name] : names())
      f(name, JsonNode(json_.at(key), concat_path(key)));
  }

  std::string text() const;
  std::int64_t integer() const;
  double number() const;
  bool truth() const;
  /// Throws when an object has a key that is not among these.
  void require_known(std::initializer_list<std::string_view> keys) const;
  std::vector<std::int64_t> integers() const;
  /// Its elements, which go by its path.
  std::vector<JsonNode> list() const;

  const std::string& path() const { return path_; }

 private:
  /// Keys of an object, and what they stand for.
  std::vector<std::pair<std::string, std::string>> names() const;
  std::string concat_path(const std::string& key) const;
  void require(bool holds, std::string_view expected) const;
  std::string described() const;

  const Json& json_;
  std::string path_;
};

}  // namespace kzero::detail
