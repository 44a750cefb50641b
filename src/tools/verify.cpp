// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero verify FILE...
#include <CLI/CLI.hpp>
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

/// Reads every byte. What is wrong, a line each.
std::vector<std::string> problems_of(const std::string& file,
                                     std::int64_t& bytes) {
  std::vector<std::string> problems;
  try {
    const CheckpointReader reader(file);
    bytes = reader.bytes();
    Progress progress(file, bytes);
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
    if (problems.empty())
      problems = hdf5_differences(file, reader.stored(), reader.file_header());
  } catch (const std::exception& error) {
    problems.emplace_back(error.what());
  }
  return problems;
}

void verify(const std::vector<std::string>& files, Outcome& outcome) {
  Json all = Json::array();
  for (const std::string& file : files) {
    std::error_code error;
    const bool is_there = std::filesystem::is_regular_file(file, error);
    std::int64_t bytes = 0;
    const std::vector<std::string> problems = problems_of(file, bytes);
    if (!problems.empty())
      outcome.code = std::max(
          outcome.code, is_there ? int{found_something} : int{cannot_tell});
    all.push_back({{"file", file},
                   {"in_order", problems.empty()},
                   {"problems", problems}});
    if (outcome.as_json) continue;
    if (problems.empty())
      std::cout << file << ": in order, " << bytes_text(bytes) << " verified\n";
    for (const std::string& problem : problems)
      std::cout << file << ": " << problem << '\n';
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
