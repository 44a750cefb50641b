// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero verify FILE...
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/json_node.hpp"
#include "tools/commands.hpp"
#include "tools/elements.hpp"
#include "tools/hdf5_comparison.hpp"
#include "tools/progress.hpp"

namespace kzero::tools {
namespace {

using detail::CheckpointReader;
using detail::Json;

struct Findings {
  std::vector<std::string> problems;
  /// Whether they are the file's.
  bool can_tell = true;
  std::int64_t bytes = 0;
};

/// Reads every byte.
Findings look_at(const std::string& file) {
  Findings found;
  std::vector<std::string>& problems = found.problems;
  std::error_code ignored;
  found.can_tell = access(file.c_str(), R_OK) == 0 &&
                   std::filesystem::is_regular_file(file, ignored);
  try {
    const CheckpointReader reader(file);
    found.bytes = reader.bytes();
    Progress progress(file, found.bytes);
    const auto& parameters = reader.layout().parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (std::size_t k = 0; k < parameters[i].arrays.size(); ++k) {
        try {
          reader.read_pieces(
              {i, k}, [&](std::int64_t, std::span<const std::byte> piece) {
                progress.add(std::ssize(piece));
              });
        } catch (const std::exception& error) {
          problems.emplace_back(error.what());
        }
      }
    // HDF5 interprets nothing that is damaged.
    if (!problems.empty()) return found;
    try {
      problems = hdf5_differences(file, reader.stored(), reader.file_header());
    } catch (const std::exception&) {
      found.can_tell = false;
      throw;
    }
  } catch (const std::exception& error) {
    problems.emplace_back(error.what());
  }
  return found;
}

void verify(const std::vector<std::string>& files, Outcome& outcome) {
  Json all = Json::array();
  for (const std::string& file : files) {
    const Findings found = look_at(file);
    if (!found.problems.empty())
      outcome.code =
          std::max(outcome.code,
                   found.can_tell ? int{found_something} : int{cannot_tell});
    all.push_back({{"file", file},
                   {"in_order", found.problems.empty()},
                   {"problems", found.problems}});
    if (outcome.as_json) continue;
    if (found.problems.empty())
      std::cout << printable(file) << ": in order, " << bytes_text(found.bytes)
                << " verified\n";
    for (const std::string& problem : found.problems)
      std::cout << printable(file) << ": " << problem << '\n';
  }
  if (outcome.as_json)
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace)
              << '\n';
}

}  // namespace

void add_verify(CLI::App& app, Outcome& outcome) {
  CLI::App* const command =
      app.add_subcommand("verify",
                         "Compares every byte with its checksum, and HDF5's "
                         "part with the manifest");
  const auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("FILE", *files, "Checkpoints")->required();
  command->callback([files, &outcome] { verify(*files, outcome); });
}

}  // namespace kzero::tools
