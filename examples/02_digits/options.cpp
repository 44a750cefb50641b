// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "agreement.hpp"

namespace digits {
namespace {

[[noreturn]] void reject(std::string_view name, const std::string& text,
                         const std::string& expected) {
  throw UserError(std::string(name) + " got \"" + text + "\", expected " +
                  expected);
}

std::int64_t whole(std::string_view name, const std::string& text,
                   std::int64_t least,
                   std::int64_t most = std::numeric_limits<int>::max()) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) {
    reject(name, text,
           "a whole number from " + std::to_string(least) + " to " +
               std::to_string(most));
  }
  return value;
}

/// A finite number, at least 0, or above 0.
double number(std::string_view name, const std::string& text, bool zero) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0.0 ||
      (value == 0.0 && !zero)) {
    reject(name, text, zero ? "a number, 0 or above" : "a number above 0");
  }
  return value;
}

std::vector<int> widths(std::string_view name, const std::string& text) {
  std::vector<int> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    result.push_back(static_cast<int>(
        whole(name, text.substr(begin, end - begin), 1, 65536)));
    begin = end + 1;
  }
  return result;
}

Activation activation(std::string_view name, const std::string& text) {
  if (text == "tanh") return Activation::tanh;
  if (text == "relu") return Activation::relu;
  reject(name, text, "tanh or relu");
}

kzero::DType dtype(std::string_view name, const std::string& text) {
  for (const auto type :
       {kzero::DType::float32, kzero::DType::bfloat16, kzero::DType::float16}) {
    if (text == kzero::to_string(type)) return type;
  }
  reject(name, text, "float32, bfloat16 or float16");
}

kzero::Scaler scaler(std::string_view name, const std::string& text) {
  constexpr std::string_view dynamic = "dynamic";
  try {
    if (!text.starts_with(dynamic)) {
      return kzero::Scaler::constant(number(name, text, false));
    }
    kzero::DynamicScaler scaling;
    const std::string rest = text.substr(dynamic.size());
    if (!rest.empty()) {
      if (rest.front() != ':') reject(name, text, "dynamic or dynamic:START");
      scaling.initial_scale = number(name, rest.substr(1), false);
    }
    return kzero::Scaler::dynamic(scaling);
  } catch (const kzero::InvalidArgument& error) {
    throw UserError(std::string(name) + ": " + error.what());
  }
}

struct Option {
  std::string_view name;
  std::string_view value;  // empty: a switch
  std::string_view help;
  std::function<void(std::string_view name, const std::string&)> set;
};

std::vector<Option> option_table(Options& o) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  using Name = std::string_view;
  using Text = const std::string&;
  return {
      {"--batch", "N", "images a step, over all ranks (64)",
       [&](Name n, Text t) { o.batch = whole(n, t, 1); }},
      {"--epochs", "N", "how often all images are used, in all (60)",
       [&](Name n, Text t) { o.epochs = whole(n, t, 0); }},
      {"--hidden", "N[,N...]", "widths of the hidden layers (128)",
       [&](Name n, Text t) { o.network.hidden = widths(n, t); }},
      {"--activation", "F", "tanh or relu (relu)",
       [&](Name n, Text t) { o.network.activation = activation(n, t); }},
      {"--dtype", "T", "parameters: float32, bfloat16 or float16 (float32)",
       [&](Name n, Text t) { o.network.dtype = dtype(n, t); }},
      {"--learning-rate", "X", "of AdamW (0.002)",
       [&](Name n, Text t) { o.learning_rate = number(n, t, true); }},
      {"--weight-decay", "X", "of AdamW, not on biases (0.1)",
       [&](Name n, Text t) { o.weight_decay = number(n, t, true); }},
      {"--clip", "X", "bound on the gradient's norm (none)",
       [&](Name n, Text t) { o.clip = number(n, t, false); }},
      {"--loss-scale", "S", "a number, dynamic or dynamic:START",
       [&](Name n, Text t) { o.scaler = scaler(n, t); }},
      {"--seed", "N", "of initial weights and batches (4)",
       [&](Name n, Text t) { o.seed = whole(n, t, 0, most); }},
      {"--bucket-bytes", "N", "gradients communicated at once",
       [&](Name n, Text t) { o.bucket_bytes = whole(n, t, 1, most); }},
      {"--checkpoint", "FILE", "save there at the end",
       [&](Name, Text t) { o.checkpoint = t; }},
      {"--checkpoint-every", "N", "and every N epochs",
       [&](Name n, Text t) { o.checkpoint_every = whole(n, t, 1); }},
      {"--resume", "", "go on from the checkpoint, on any number of ranks",
       [&](Name, Text) { o.resume = true; }},
      {"--progress", "", "rewrite one line, as on a terminal",
       [&](Name, Text) { o.progress = true; }},
      {"--metrics", "FILE", "a line of JSON an epoch",
       [&](Name, Text t) { o.metrics = t; }},
      {"--data", "FILE", "the images (searched for as digits.h5)",
       [&](Name, Text t) { o.data = t; }},
      {"--help", "", "print this", [&](Name, Text) { o.help = true; }},
  };
}

void check_together(const Options& options) {
  if (options.checkpoint.empty() && options.resume) {
    throw UserError("--resume needs --checkpoint FILE, to resume from");
  }
  if (options.checkpoint.empty() && options.checkpoint_every != 0) {
    throw UserError("--checkpoint-every needs --checkpoint FILE");
  }
}

}  // namespace

kzero::Scaler default_scaler(kzero::DType dtype) {
  return dtype == kzero::DType::float16 ? kzero::Scaler::dynamic()
                                        : kzero::Scaler::none;
}

Options take_options(int& argc, char* argv[]) {
  Options options;
  const std::vector<Option> table = option_table(options);
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--kokkos-")) {
      argv[kept++] = argv[i];
      continue;
    }
    const std::size_t equals = argument.find('=');  // --name=value
    const std::string name = argument.substr(0, equals);
    const Option* found = nullptr;
    for (const Option& option : table) {
      if (option.name == name) found = &option;
    }
    if (found == nullptr) {
      throw UserError("unknown option \"" + argument + "\", see --help");
    }
    if (found->value.empty()) {
      if (equals != std::string::npos) throw UserError(name + " has no value");
      found->set(found->name, "");
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    }
    if (value.empty() ||
        (equals == std::string::npos && value.starts_with("--"))) {
      throw UserError(name + " needs a value: " + name + " " +
                      std::string(found->value));
    }
    found->set(found->name, value);
  }
  argc = kept;
  argv[argc] = nullptr;
  if (!options.help) check_together(options);
  return options;
}

std::string usage() {
  Options unused;
  std::string text =
      "Trains a network on images of handwritten digits.\n"
      "usage: mpiexec -n RANKS 02_digits [options]\n";
  for (const Option& option : option_table(unused)) {
    std::string line(option.name);
    if (!option.value.empty()) line.append(" ").append(option.value);
    line.resize(std::max<std::size_t>(line.size() + 1, 25), ' ');
    text.append("  ").append(line).append(option.help).append("\n");
  }
  return text;
}

}  // namespace digits
