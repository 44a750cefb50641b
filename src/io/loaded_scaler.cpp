// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/loaded_scaler.hpp"

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
                             const DynamicScaling& program) {
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
  return state;
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
    return {checked_state(*file, program.scaling()), {}};
  LoadedScaler loaded{initial_state(program), {}};
  const double scale = file ? file->state.scale : 1.0;
  const bool same_scale =
      program.kind() != Scaler::Kind::constant || scale == loaded.state.scale;
  if (mine != kind || !same_scale)
    loaded.warning = warning_of(program, kind, scale);
  return loaded;
}

}  // namespace kzero::detail
