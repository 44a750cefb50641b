// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero convert SOURCE TARGET
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <kzero/error.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/message.hpp"
#include "io/json_node.hpp"
#include "tools/commands.hpp"
#include "tools/elements.hpp"
#include "tools/progress.hpp"
#include "tools/tensor_files.hpp"

namespace kzero::tools {
namespace {

using detail::Json;

const std::map<std::string, Format> formats = {
    {"checkpoint", Format::checkpoint},
    {"safetensors", Format::safetensors},
    {"npz", Format::npz}};

struct ConvertOptions {
  std::string source;
  std::string target;
  std::optional<Format> from;
  std::optional<Format> to;
  bool state = false;
  bool main = false;
  bool without_state = false;
  bool skip_other_types = false;
  std::string type;
};

Tensors read(const ConvertOptions& options) {
  return read_tensors(
      options.source,
      options.state  ? Content::all
      : options.main ? Content::main
                     : Content::values,
      options.skip_other_types ? OtherTypes::pass_over : OtherTypes::refuse,
      options.from);
}

/// What is asked for of what was read.
void choose(const ConvertOptions& options, Format to, Tensors& tensors) {
  if (options.without_state) tensors.manifest.clear();
  // Integers are the caller's own arrays, which stand in the manifest.
  if (options.skip_other_types && to == Format::checkpoint &&
      tensors.manifest.empty())
    std::erase_if(tensors.tensors, [&](const Tensor& tensor) {
      if (parameter_dtype(tensor.type)) return false;
      tensors.passed_over.push_back(detail::concat(detail::quoted(tensor.name),
                                                   " has the type ",
                                                   to_string(tensor.type)));
      return true;
    });
  if (options.type.empty()) return;
  if (!tensors.manifest.empty())
    throw InvalidArgument(
        "--type is for parameters alone: leave the state out "
        "(--without-state), or load with LoadOptions::other_type");
  for (Tensor& tensor : tensors.tensors)
    if (parameter_dtype(tensor.type))
      tensor = converted(std::move(tensor), type_named(options.type));
}

/// The options that say what of a checkpoint, of another file say nothing.
void require_fitting(const ConvertOptions& options) {
  if ((options.state || options.main) &&
      format_of(options.source, options.from) != Format::checkpoint)
    throw InvalidArgument(
        "--state and --main choose of a checkpoint, and the source is none");
  const std::string extension =
      std::filesystem::path(options.target).extension();
  if (!options.to && is_checkpoint(options.target) && !extension.empty() &&
      extension != ".h5" && extension != ".hdf5")
    throw InvalidArgument(detail::concat(
        "what is ", detail::quoted(extension),
        "? Targets are .h5, .safetensors and .npz; for others say --to"));
}

void convert(const ConvertOptions& options, const Outcome& outcome) {
  require_fitting(options);
  Tensors tensors = read(options);
  const Format to = format_of(options.target, options.to);
  choose(options, to, tensors);
  std::int64_t bytes = 0;
  for (const Tensor& tensor : tensors.tensors) bytes += tensor.bytes();
  {
    Progress progress(options.target, bytes);
    write_tensors(options.target, to, tensors,
                  [&](std::int64_t count) { progress.add(count); });
  }
  if (outcome.as_json) {
    std::cout << Json{{"source", options.source},
                      {"target", options.target},
                      {"arrays", tensors.tensors.size()},
                      {"bytes", bytes},
                      {"passed_over", tensors.passed_over}}
                     .dump(2, ' ', false, Json::error_handler_t::replace)
              << '\n';
    return;
  }
  for (const std::string& each : tensors.passed_over)
    std::cout << "passed over: " << printable(each) << '\n';
  std::cout << printable(options.target) << ": " << tensors.tensors.size()
            << " arrays, " << bytes_text(bytes) << '\n';
}

}  // namespace

void add_convert(CLI::App& app, Outcome& outcome) {
  CLI::App* const command = app.add_subcommand(
      "convert",
      "Converts a checkpoint to safetensors or npz, or one of these to a "
      "checkpoint");
  const auto options = std::make_shared<ConvertOptions>();
  const auto add_format = [&](const char* name, std::optional<Format>& format) {
    command->add_option(name, format, "What it is, if not what its name says")
        ->transform(CLI::CheckedTransformer(formats));
  };
  command
      ->add_option("SOURCE", options->source,
                   "A checkpoint, .safetensors or .npz")
      ->required();
  command
      ->add_option("TARGET", options->target,
                   "Likewise; one that is there is replaced")
      ->required();
  add_format("--from", options->from);
  add_format("--to", options->to);
  CLI::Option* const state = command->add_flag(
      "--state", options->state,
      "Of a checkpoint everything, so that it can be converted back");
  command
      ->add_flag("--main", options->main,
                 "Of a checkpoint main parameters in place of 16-bit values")
      ->excludes(state);
  command
      ->add_flag("--without-state", options->without_state,
                 "All arrays as parameters, though a checkpoint's state is "
                 "among them")
      ->excludes(state);
  command->add_flag("--skip-other-types", options->skip_other_types,
                    "Pass over arrays of types that no checkpoint has");
  command
      ->add_option("--type", options->type,
                   "Parameters become float16, bfloat16, float32 or float64")
      ->check(CLI::IsMember({"float16", "bfloat16", "float32", "float64"}));
  command->callback([options, &outcome] { convert(*options, outcome); });
}

}  // namespace kzero::tools
