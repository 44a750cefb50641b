// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero ls FILE
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/layout_json.hpp"
#include "tools/commands.hpp"
#include "tools/elements.hpp"

namespace kzero::tools {
namespace {

using detail::CheckpointReader;
using detail::Json;
using detail::ParameterLayout;

std::int64_t bytes_of(const ParameterLayout& parameter) {
  std::int64_t bytes = 0;
  for (const detail::ArrayLayout& array : parameter.arrays)
    bytes += detail::array_bytes(parameter, array.dtype);
  return bytes;
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] + 2 - row[i].size(), ' ');
    }
    std::cout << line << '\n';
  }
}

void print(const CheckpointReader& reader) {
  const detail::FileLayout& layout = reader.layout();
  const CheckpointContent& content = layout.content;
  std::cout << content.step << " steps (" << layout.skipped_total
            << " skipped), saved by " << content.world_size
            << " ranks with kzero " << content.library_version << ", "
            << content.created << ", " << bytes_text(reader.bytes()) << "\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"parameter", "type", "shape", "group", "updates", "bytes", "arrays"}};
  for (const ParameterLayout& parameter : layout.parameters) {
    std::string arrays;
    for (const detail::ArrayLayout& array : parameter.arrays)
      arrays +=
          detail::concat(arrays.empty() ? "" : " ", printable(array.name));
    rows.push_back({printable(parameter.name),
                    std::string(to_string(parameter.arrays.front().dtype)),
                    shape_text(parameter.extents), printable(parameter.group),
                    std::to_string(parameter.update_count),
                    bytes_text(bytes_of(parameter)), arrays});
  }
  print_table(rows);
  for (const detail::GroupLayout& group : layout.groups) {
    std::cout << "\ngroup " << printable(group.name) << ": " << group.rule;
    for (const auto& [name, value] : group.hyperparameters)
      std::cout << ' ' << name << ' ' << number_text(value);
  }
  if (layout.scaler)
    std::cout << "\nscaler " << layout.scaler->kind << ", scale "
              << number_text(layout.scaler->state.scale);
  for (const auto& [name, value] : content.user)
    std::cout << "\nuser " << printable(name) << ": " << text_of(value);
  std::cout << '\n';
}

Json json_of(const CheckpointReader& reader) {
  const detail::FileLayout& layout = reader.layout();
  Json parameters = Json::array();
  for (const ParameterLayout& parameter : layout.parameters) {
    Json arrays = Json::object();
    for (const detail::ArrayLayout& array : parameter.arrays)
      arrays[printable(array.name)] = to_string(array.dtype);
    parameters.push_back({{"name", printable(parameter.name)},
                          {"group", printable(parameter.group)},
                          {"update_count", parameter.update_count},
                          {"extents", parameter.extents},
                          {"arrays", std::move(arrays)},
                          {"bytes", bytes_of(parameter)}});
  }
  Json user = Json::object();
  for (const auto& [name, value] : layout.content.user)
    user[printable(name)] = text_of(value);
  Json json = {{"step", layout.content.step},
               {"skipped_total", layout.skipped_total},
               {"world_size", layout.content.world_size},
               {"library_version", layout.content.library_version},
               {"created", layout.content.created},
               {"file_bytes", reader.bytes()},
               {"groups", detail::json_of(layout.groups)},
               {"parameters", std::move(parameters)},
               {"user", std::move(user)}};
  if (layout.scaler) json["scaler"] = detail::json_of(*layout.scaler);
  return json;
}

}  // namespace

void add_list(CLI::App& app, Outcome& outcome) {
  CLI::App* const command = app.add_subcommand(
      "ls", "Lists what a checkpoint holds; all but the arrays is verified");
  const auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "The checkpoint")->required();
  command->callback([file, &outcome] {
    const CheckpointReader reader(*file);
    if (outcome.as_json)
      std::cout << json_of(reader).dump(2, ' ', false,
                                        Json::error_handler_t::replace)
                << '\n';
    else
      print(reader);
  });
}

}  // namespace kzero::tools
