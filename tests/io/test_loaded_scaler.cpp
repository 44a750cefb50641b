// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <limits>

#include "io/checkpoint_error.hpp"
#include "io/loaded_scaler.hpp"

using namespace kzero;
using namespace kzero::detail;
using namespace kzero::test;

namespace {

ScalerLayout layout(const char* kind, double scale, std::int64_t good_steps = 0,
                    std::int64_t hysteresis_left = 1) {
  return {kind, {scale, good_steps, hysteresis_left}};
}

void expect_state(const LoadedScaler& loaded, const LossScaleState& state) {
  EXPECT_EQ(loaded.state.scale, state.scale);
  EXPECT_EQ(loaded.state.good_steps, state.good_steps);
  EXPECT_EQ(loaded.state.hysteresis_left, state.hysteresis_left);
}

const Scaler dynamic_scaler = Scaler::dynamic(
    {.initial_scale = 512.0, .growth_interval = 10, .hysteresis = 3});

TEST(LoadedScaler, TakesTheStateOfADynamicOne) {
  const LoadedScaler loaded =
      loaded_scaler(dynamic_scaler, layout("dynamic", 0.75, 9, 2));
  expect_state(loaded, {0.75, 9, 2});
  EXPECT_EQ(loaded.warning, "");
}

TEST(LoadedScaler, CountsAnewPastTheInterval) {
  for (const std::int64_t good : {10, 11, 1000000})
    expect_state(loaded_scaler(dynamic_scaler, layout("dynamic", 2.0, good, 0)),
                 {2.0, 0, 0});
}

TEST(LoadedScaler, KeepsTheLimitsOfTheProgram) {
  const Scaler program = Scaler::dynamic(
      {.initial_scale = 512.0, .hysteresis = 2, .minimum = 4.0});
  expect_state(loaded_scaler(program, layout("dynamic", 0.5, 1, 100)),
               {4.0, 1, 2});
  expect_state(loaded_scaler(program, layout("dynamic", 8.0, 1, 1)),
               {8.0, 1, 1});
}

TEST(LoadedScaler, WarnsOfOtherSettings) {
  const DynamicScaler mine = dynamic_scaler.scaling();
  const auto warning = [&](auto&& change) {
    ScalerLayout file = layout("dynamic", 8.0, 1, 2);
    file.scaling = mine;
    change(*file.scaling);
    const LoadedScaler loaded = loaded_scaler(dynamic_scaler, file);
    expect_state(loaded, {8.0, 1, 2});
    return loaded.warning;
  };
  EXPECT_EQ(warning([](DynamicScaler& s) { s.initial_scale = 1.0; }), "");
  EXPECT_TRUE(says(warning([](DynamicScaler& s) { s.growth = 4.0; }),
                   {"growth is 4 in the checkpoint and 2 in the program",
                    "the program's settings are used"}));
  EXPECT_TRUE(says(warning([](DynamicScaler& s) { s.backoff = 0.25; }),
                   {"backoff is 0.25 in the checkpoint and 0.5"}));
  EXPECT_TRUE(says(warning([](DynamicScaler& s) { s.growth_interval = 9; }),
                   {"growth_interval is 9 in the checkpoint and 10"}));
  const std::string both = warning([](DynamicScaler& s) {
    s.hysteresis = 5;
    s.minimum = 1.0;
  });
  EXPECT_TRUE(says(both, {"hysteresis is 5 in the checkpoint and 3",
                          "minimum is 1 in the checkpoint and 0"}));
  EXPECT_EQ(both.find("growth"), both.npos);
}

TEST(LoadedScaler, RefusesAStateThatNoneHas) {
  const auto problem = [](const ScalerLayout& file) {
    return checkpoint_error([&] { loaded_scaler(dynamic_scaler, file); });
  };
  using Limits = std::numeric_limits<double>;
  for (const double scale :
       {0.0, -1.0, 1e-39, 3.5e38, Limits::infinity(), Limits::quiet_NaN()})
    EXPECT_TRUE(says(problem(layout("dynamic", scale)), {"scale", "float32"}))
        << scale;
  EXPECT_TRUE(says(problem(layout("dynamic", 1.0, -1)), {"good_steps", "-1"}));
  EXPECT_TRUE(
      says(problem(layout("dynamic", 1.0, 0, -2)), {"hysteresis_left", "-2"}));
}

TEST(LoadedScaler, WarnsWhereTheProgramHasNone) {
  LoadedScaler loaded =
      loaded_scaler(Scaler::none, layout("dynamic", 4096.0, 3));
  expect_state(loaded, {1.0, 0, 1});
  EXPECT_TRUE(
      says(loaded.warning, {"dynamic loss scaler (scale 4096)",
                            "no loss scaler", "OptimizerOptions::scaler",
                            "Scaler::dynamic({.initial_scale = 4096})"}));
  loaded = loaded_scaler(Scaler::none, layout("constant", 128.0));
  EXPECT_TRUE(says(loaded.warning, {"Scaler::constant(128)"}));
}

TEST(LoadedScaler, WarnsWhereTheFileHasNone) {
  for (const auto& file :
       {std::optional<ScalerLayout>(), std::optional(layout("none", 1.0))}) {
    LoadedScaler loaded = loaded_scaler(dynamic_scaler, file);
    expect_state(loaded, {512.0, 0, 3});
    EXPECT_TRUE(says(loaded.warning, {"no loss scaler", "dynamic",
                                      "starts from its initial scale 512"}));
    loaded = loaded_scaler(Scaler::constant(8.0), file);
    expect_state(loaded, {8.0, 0, 1});
    EXPECT_TRUE(says(loaded.warning,
                     {"no loss scaler", "constant", "the program's is used"}));
    EXPECT_EQ(loaded_scaler(Scaler::none, file).warning, "");
  }
}

TEST(LoadedScaler, WarnsOfOtherKindsAndConstants) {
  LoadedScaler loaded =
      loaded_scaler(Scaler::constant(8.0), layout("constant", 16.0));
  expect_state(loaded, {8.0, 0, 1});
  EXPECT_TRUE(says(loaded.warning, {"scale 16", "scale 8"}));
  EXPECT_EQ(
      loaded_scaler(Scaler::constant(8.0), layout("constant", 8.0)).warning,
      "");
  loaded = loaded_scaler(dynamic_scaler, layout("constant", 16.0));
  expect_state(loaded, {512.0, 0, 3});
  EXPECT_TRUE(says(loaded.warning, {"constant", "dynamic", "512"}));
  loaded = loaded_scaler(Scaler::constant(8.0), layout("dynamic", 16.0, 5));
  expect_state(loaded, {8.0, 0, 1});
  EXPECT_TRUE(says(loaded.warning, {"dynamic", "constant"}));
  loaded = loaded_scaler(Scaler::constant(8.0), layout("of tomorrow", 16.0));
  EXPECT_TRUE(
      says(loaded.warning, {"\"of tomorrow\"", "does not know", "constant"}));
  loaded = loaded_scaler(Scaler::none, layout("of tomorrow", 16.0));
  EXPECT_EQ(loaded.warning.find("Scaler::"), std::string::npos);
}

}  // namespace
