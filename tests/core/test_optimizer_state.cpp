// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The state as plain data: it is found by name, read by type, and compared.
#include <gtest/gtest.h>

#include <cstring>
#include <kzero/error.hpp>
#include <kzero/optimizer_state.hpp>
#include <limits>

namespace kzero {
namespace {

template <class T>
StateArray array_of(std::string name, const std::vector<T>& values) {
  StateArray array{std::move(name), dtype_of<T>};
  array.bytes.resize(values.size() * sizeof(T));
  if (!values.empty())
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

OptimizerState small_state() {
  OptimizerState state;
  state.steps = 3;
  state.groups = {{"default", "adamw", {{"learning_rate", 0.5}}},
                  {"other", "sgd"}};
  state.parameters = {
      {"half",
       "default",
       {2},
       3,
       {array_of<bfloat16>("value", {bfloat16(1.0f), bfloat16(-2.0f)}),
        array_of<float>("main", {1.0f, -2.0f})}},
      {"double", "other", {}, 0, {array_of<double>("value", {0.25})}},
      {"none", "other", {0}, 0, {array_of<float16>("value", {})}}};
  return state;
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

TEST(OptimizerState, IsFoundByName) {
  const OptimizerState state = small_state();
  EXPECT_EQ(&state.parameter("double"), &state.parameters[1]);
  EXPECT_EQ(state.find("double"), &state.parameters[1]);
  EXPECT_EQ(state.find("doubl"), nullptr);
  EXPECT_EQ(state.group("other").rule, "sgd");
  EXPECT_EQ(state.group("default").hyperparameters.at("learning_rate"), 0.5);
  const ParameterState& half = state.parameter("half");
  EXPECT_EQ(half.find("main"), &half.arrays[1]);
  EXPECT_EQ(half.find("exp_avg"), nullptr);
}

TEST(OptimizerState, HasTypedElements) {
  const OptimizerState state = small_state();
  const auto value = state.parameter("half").elements<bfloat16>("value");
  ASSERT_EQ(value.size(), 2u);
  EXPECT_EQ(float(value[1]), -2.0f);
  const auto main = state.parameter("half").elements<float>("main");
  ASSERT_EQ(main.size(), 2u);
  EXPECT_EQ(main[0], 1.0f);
  EXPECT_EQ(main[1], -2.0f);
  const auto number = state.parameter("double").elements<double>("value");
  ASSERT_EQ(number.size(), 1u);
  EXPECT_EQ(number[0], 0.25);
  EXPECT_TRUE(state.parameter("none").elements<float16>("value").empty());
}

TEST(OptimizerState, SaysWhatIsNotThere) {
  const OptimizerState state = small_state();
  const ParameterState& half = state.parameter("half");
  EXPECT_EQ(message_of([&] { static_cast<void>(state.parameter("x\n")); }),
            "the state has no parameter \"x\\x0a\": ask for one of its "
            "parameters (a tied one has no entry of its own)");
  EXPECT_EQ(message_of([&] { static_cast<void>(state.group("x")); }),
            "the state has no group \"x\": ask for one of its groups");
  EXPECT_EQ(message_of([&] { half.elements<float>("exp_avg"); }),
            "the state of parameter \"half\" has no array \"exp_avg\": ask for "
            "one of its arrays");
  EXPECT_EQ(message_of([&] { half.elements<float>("value"); }),
            "the array \"value\" of parameter \"half\" is bfloat16, but a span "
            "of float32 was asked for: name its own type");
  EXPECT_EQ(message_of([&] { half.elements<float16>("value"); }),
            "the array \"value\" of parameter \"half\" is bfloat16, but a span "
            "of float16 was asked for: name its own type");
}

TEST(OptimizerState, IsComparedByEveryMember) {
  const OptimizerState state = small_state();
  EXPECT_EQ(state, small_state());
  const auto differs = [&](auto&& change) {
    OptimizerState other = state;
    change(other);
    return other != state;
  };
  using State = OptimizerState;
  EXPECT_TRUE(differs([](State& s) { s.steps = 4; }));
  EXPECT_TRUE(differs([](State& s) { s.skipped_total = 4; }));
  EXPECT_TRUE(differs([](State& s) { s.skipped_in_a_row = 4; }));
  EXPECT_TRUE(differs([](State& s) { s.scaler.scaler = DynamicScaler(); }));
  EXPECT_TRUE(differs([](State& s) { s.scaler.scale = 2.0; }));
  EXPECT_TRUE(differs([](State& s) { s.scaler.good_steps = 2; }));
  EXPECT_TRUE(differs([](State& s) { s.scaler.hysteresis_left = 2; }));
  EXPECT_TRUE(differs([](State& s) { s.groups[0].name = "x"; }));
  EXPECT_TRUE(differs([](State& s) { s.groups[0].rule = "x"; }));
  EXPECT_TRUE(differs([](State& s) { s.groups[1].hyperparameters["a"]; }));
  EXPECT_TRUE(differs([](State& s) { s.parameters.pop_back(); }));
  EXPECT_TRUE(differs([](State& s) { s.parameters[0].name = "x"; }));
  EXPECT_TRUE(differs([](State& s) { s.parameters[0].group = "x"; }));
  EXPECT_TRUE(differs([](State& s) { s.parameters[0].extents = {1, 2}; }));
  EXPECT_TRUE(differs([](State& s) { s.parameters[0].update_count = 4; }));
  const auto array = [](State& s) -> StateArray& {
    return s.parameters[0].arrays[1];
  };
  EXPECT_TRUE(differs([&](State& s) { array(s).name = "x"; }));
  EXPECT_TRUE(differs([&](State& s) { array(s).dtype = DType::float64; }));
  EXPECT_TRUE(differs([&](State& s) { array(s).bytes[7] ^= std::byte{1}; }));
}

// NaN is equal to itself, and 0 is not -0.
TEST(OptimizerState, IsComparedByItsBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(array_of<float>("a", {nan}), array_of<float>("a", {nan}));
  EXPECT_NE(array_of<float>("a", {0.0f}), array_of<float>("a", {-0.0f}));
}

}  // namespace
}  // namespace kzero
