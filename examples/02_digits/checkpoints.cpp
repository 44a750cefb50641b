// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "checkpoints.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>

#include "agreement.hpp"

namespace digits {
namespace {

std::int64_t number(const kzero::CheckpointContent& content,
                    const Options& options, const std::string& name) {
  const auto found = content.user.find(name);
  const auto* value = found == content.user.end()
                          ? nullptr
                          : std::get_if<std::int64_t>(&found->second);
  if (value == nullptr) {
    throw UserError("checkpoint " + options.checkpoint.string() +
                    " holds no number \"" + name +
                    "\": it was not saved by this program");
  }
  return *value;
}

}  // namespace

void check_folder(const Options& options) {
  const std::filesystem::path folder = options.checkpoint.parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  throw std::runtime_error("checkpoint " + options.checkpoint.string() +
                           " cannot be saved: there is no folder " +
                           folder.string());
}

void save(kzero::ShardedOptimizer& optimizer, const Options& options,
          std::int64_t epochs) {
  kzero::CheckpointOptions content;
  content.user["epochs"] = epochs;
  content.user["batch"] = options.batch;
  content.user["seed"] = options.seed;
  kzero::save_checkpoint(optimizer, options.checkpoint, content);
}

std::int64_t resume(kzero::ShardedOptimizer& optimizer,
                    const Options& options) {
  const kzero::CheckpointContent content =
      kzero::load_checkpoint(optimizer, options.checkpoint);

  const auto expect = [&](const std::string& name, std::int64_t given) {
    const std::int64_t saved = number(content, options, name);
    if (saved == given) return;
    throw UserError("checkpoint " + options.checkpoint.string() +
                    " is of a run with --" + name + " " +
                    std::to_string(saved) + ", not " + std::to_string(given) +
                    ": give the same, or start anew without --resume");
  };
  expect("batch", options.batch);
  expect("seed", options.seed);

  if (options.learning_rate) {
    for (const char* group : {"default", "bias"}) {
      optimizer.group(group).set("learning_rate", *options.learning_rate);
    }
  }
  if (options.weight_decay) {
    optimizer.group("default").set("weight_decay", *options.weight_decay);
  }
  return number(content, options, "epochs");
}

}  // namespace digits
