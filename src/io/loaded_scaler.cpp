// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/loaded_scaler.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <limits>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

void require(bool holds, std::string_view what, double value,
             std::string_view expected) {
  if (!holds)
    throw CheckpointError(
        concat("the scaler's ", what, " is ", value, ", expected ", expected));
}

LossScaleState checked_state(const ScalerLayout& file,
                             const DynamicScaler& program) {
  using Limits = std::numeric_limits<float>;
  LossScaleState state = file.state;
  require(state.scale >= static_cast<double>(Limits::min()) &&
              state.scale <= static_cast<double>(Limits::max()),
          "scale", state.scale, "a normal float32 number above 0");
  require(state.good_steps >= 0, "good_steps",
          static_cast<double>(state.good_steps), "0 or more");
  require(state.hysteresis_left >= 0, "hysteresis_left",
          static_cast<double>(state.hysteresis_left), "0 or more");
  // Growth comes when the count reaches the interval, and only then.
  if (state.good_steps >= program.growth_interval) state.good_steps = 0;
  state.hysteresis_left = std::min(state.hysteresis_left, program.hysteresis);
  state.scale = std::max(state.scale, program.minimum);
  return state;
}

/// Empty where both are equal, but for the initial scale.
std::string other_settings(const DynamicScaler& program,
                           const DynamicScaler& file) {
  std::string text;
  const auto compare = [&](std::string_view name, auto mine, auto theirs) {
    if (mine == theirs) return;
    text += concat(text.empty() ? "" : ", ", name, " is ", theirs,
                   " in the checkpoint and ", mine, " in the program");
  };
  compare("growth", program.growth, file.growth);
  compare("backoff", program.backoff, file.backoff);
  compare("growth_interval", program.growth_interval, file.growth_interval);
  compare("hysteresis", program.hysteresis, file.hysteresis);
  compare("minimum", program.minimum, file.minimum);
  return text;
}

LoadedScaler loaded_dynamic(const DynamicScaler& program,
                            const ScalerLayout& file) {
  LoadedScaler loaded{checked_state(file, program), {}};
  const std::string others =
      file.scaling ? other_settings(program, *file.scaling) : std::string();
  if (!others.empty())
    loaded.warning = concat("the dynamic loss scalers differ (", others,
                            "): the program's settings are used");
  return loaded;
}

/// "no loss scaler", "a dynamic loss scaler (scale 1024)".
std::string described(std::string_view kind, double scale) {
  if (kind == "none") return "no loss scaler";
  return concat("a ", kind, " loss scaler (scale ", scale, ")");
}

std::string warning_of(const Scaler& program, std::string_view kind,
                       double scale) {
  const std::string_view mine = kind_name(program.kind());
  const double initial = program.scaling().initial_scale;
  if (!is_kind(kind))
    return concat("the checkpoint has a loss scaler of the kind ",
                  detail::quoted(kind),
                  ", which this library does not know: the program's (",
                  described(mine, initial), ") starts anew");
  std::string text = concat("the checkpoint has ", described(kind, scale),
                            ", the program has ", described(mine, initial));
  if (program.kind() == Scaler::Kind::none)
    return text + concat(
                      ": if the loss is scaled, set "
                      "OptimizerOptions::scaler = Scaler::",
                      kind == "constant" ? "constant(" : "dynamic({",
                      kind == "constant" ? "" : ".initial_scale = ", scale,
                      kind == "constant" ? ")" : "})");
  if (program.kind() == Scaler::Kind::dynamic)
    return text + concat(": it starts from its initial scale ", initial);
  return text + ": the program's is used";
}

}  // namespace

LoadedScaler loaded_scaler(const Scaler& program,
                           const std::optional<ScalerLayout>& file) {
  const std::string_view mine = kind_name(program.kind());
  const std::string_view kind = file ? std::string_view(file->kind) : "none";
  if (file && kind == "dynamic" && program.kind() == Scaler::Kind::dynamic)
    return loaded_dynamic(program.scaling(), *file);
  LoadedScaler loaded{initial_state(program), {}};
  const double scale = file ? file->state.scale : 1.0;
  const bool same_scale =
      program.kind() != Scaler::Kind::constant || scale == loaded.state.scale;
  if (mine != kind || !same_scale)
    loaded.warning = warning_of(program, kind, scale);
  return loaded;
}

}  // namespace kzero::detail
