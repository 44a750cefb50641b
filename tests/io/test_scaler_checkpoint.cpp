// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The loss scale goes to a file and comes back; what differs is logged.
#include <gtest/gtest.h>

#include <kzero/checkpoint.hpp>
#include <string>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/edited_file.hpp"
#include "io/logged_words.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

using detail::LossScaleState;
using detail::OptimizerAccess;

ShardedOptimizer make(const Scaler& scaler) {
  ParameterSet model;
  model.add("p", {70}, typed(DType::bfloat16));
  OptimizerOptions options;
  options.scaler = scaler;
  return ShardedOptimizer(world(), model, options);
}

void expect_state(const ShardedOptimizer& optimizer,
                  const LossScaleState& expected) {
  const LossScaleState& state = OptimizerAccess::loss_scale(optimizer);
  EXPECT_EQ(state.scale, expected.scale);
  EXPECT_EQ(state.good_steps, expected.good_steps);
  EXPECT_EQ(state.hysteresis_left, expected.hysteresis_left);
  EXPECT_EQ(optimizer.loss_scale(), expected.scale);
}

class ScalerCheckpoint : public testing::Test {
 protected:
  /// Saves an optimizer whose scale is in this state, and loads it into one
  /// with another scaler. Returns rank 0's warnings, of which the others must
  /// have none.
  std::vector<std::string> carry_over(const Scaler& from,
                                      const LossScaleState& state,
                                      ShardedOptimizer& to) {
    auto saving = make(from);
    OptimizerAccess::set_loss_scale(saving, state);
    save_checkpoint(saving, path);
    const LoggedWords words;
    load_checkpoint(to, path);
    EXPECT_TRUE(root || words.warnings().empty());
    return words.warnings();
  }

  void change_file(const std::function<void(Json&)>& change) {
    if (root) edit_manifest(path, change);
    MPI_Barrier(MPI_COMM_WORLD);
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
  const bool root = world()->rank() == 0;
  const Scaler dynamic =
      Scaler::dynamic({.initial_scale = 256.0, .growth_interval = 50});
};

TEST_F(ScalerCheckpoint, BringsBackTheScale) {
  auto optimizer = make(dynamic);
  EXPECT_TRUE(carry_over(Scaler::dynamic({.growth_interval = 50}),
                         {96.0, 49, 0}, optimizer)
                  .empty());
  expect_state(optimizer, {96.0, 49, 0});
  EXPECT_EQ(optimizer.options().scaler, dynamic);
}

TEST_F(ScalerCheckpoint, SaysThatSettingsDiffer) {
  auto optimizer = make(dynamic);
  const auto words = carry_over(Scaler::dynamic(DynamicScaler::megatron()),
                                {96.0, 49, 2}, optimizer);
  expect_state(optimizer, {96.0, 49, 1});
  EXPECT_EQ(optimizer.options().scaler, dynamic);
  if (!root) return;
  ASSERT_EQ(words.size(), 1u);
  EXPECT_TRUE(says(words[0],
                   {"c.h5", "growth_interval is 1000 in the checkpoint and 50",
                    "hysteresis is 2", "minimum is 1"}));
}

TEST_F(ScalerCheckpoint, PassesOverKindsOfTomorrow) {
  auto optimizer = make(dynamic);
  save_checkpoint(optimizer, path);
  change_file([](Json& json) {
    json["scaler"] = {{"kind", "of tomorrow"}, {"other", 5}};
  });
  OptimizerAccess::set_loss_scale(optimizer, {2.0, 3, 0});
  const LoggedWords words;
  load_checkpoint(optimizer, path);
  expect_state(optimizer, {256.0, 0, 1});
  ASSERT_EQ(words.warnings().size(), root ? 1u : 0u);
  if (root) {
    EXPECT_TRUE(says(words.warnings()[0], {"\"of tomorrow\""}));
  }
}

TEST_F(ScalerCheckpoint, CountsAnewForAShorterInterval) {
  auto optimizer = make(dynamic);
  carry_over(Scaler::dynamic(), {96.0, 50, 1}, optimizer);
  expect_state(optimizer, {96.0, 0, 1});
}

TEST_F(ScalerCheckpoint, SaysThatTheProgramHasNone) {
  auto optimizer = make(Scaler::none);
  const auto words = carry_over(dynamic, {1024.0, 3, 1}, optimizer);
  expect_state(optimizer, {1.0, 0, 1});
  if (!root) return;
  ASSERT_EQ(words.size(), 1u);
  EXPECT_TRUE(says(words[0], {"c.h5", "scale 1024", "no loss scaler",
                              "OptimizerOptions::scaler"}));
}

TEST_F(ScalerCheckpoint, SaysThatTheFileHasNone) {
  auto optimizer = make(dynamic);
  OptimizerAccess::set_loss_scale(optimizer, {2.0, 3, 0});
  const auto words = carry_over(Scaler::none, {1.0, 0, 1}, optimizer);
  expect_state(optimizer, {256.0, 0, 1});
  if (!root) return;
  ASSERT_EQ(words.size(), 1u);
  EXPECT_TRUE(says(words[0], {"c.h5", "starts from its initial scale 256"}));
}

TEST_F(ScalerCheckpoint, SaysThatTheyDiffer) {
  auto constant = make(Scaler::constant(8.0));
  auto words = carry_over(Scaler::constant(16.0), {16.0, 0, 1}, constant);
  expect_state(constant, {8.0, 0, 1});
  if (root) {
    ASSERT_EQ(words.size(), 1u);
    EXPECT_TRUE(says(words[0], {"scale 16", "scale 8", "program's is used"}));
  }
  words = carry_over(dynamic, {1024.0, 3, 1}, constant);
  expect_state(constant, {8.0, 0, 1});
  if (root) {
    ASSERT_EQ(words.size(), 1u);
    EXPECT_TRUE(says(words[0], {"dynamic", "constant"}));
  }
}

TEST_F(ScalerCheckpoint, IsSilentWhereBothAreEqual) {
  for (const Scaler& scaler : {Scaler::none, Scaler::constant(8.0)}) {
    auto optimizer = make(scaler);
    const LossScaleState state = detail::initial_state(scaler);
    EXPECT_TRUE(carry_over(scaler, state, optimizer).empty());
    expect_state(optimizer, state);
  }
}

TEST_F(ScalerCheckpoint, ReadsFilesWithoutOne) {
  auto optimizer = make(dynamic);
  OptimizerAccess::set_loss_scale(optimizer, {2.0, 3, 0});
  save_checkpoint(optimizer, path);
  change_file([](Json& json) { json.erase("scaler"); });
  const LoggedWords words;
  load_checkpoint(optimizer, path);
  expect_state(optimizer, {256.0, 0, 1});
  EXPECT_EQ(words.warnings().size(), root ? 1u : 0u);
}

TEST_F(ScalerCheckpoint, RefusesAScaleThatIsNone) {
  auto optimizer = make(dynamic);
  OptimizerAccess::set_loss_scale(optimizer, {2.0, 3, 0});
  save_checkpoint(optimizer, path);
  change_file([](Json& json) { json["scaler"]["scale"] = 0.0; });
  const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
  EXPECT_TRUE(says(checkpoint_error([&] { load_checkpoint(optimizer, path); }),
                   {"c.h5", "scale is 0", "expected"}));
  EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
}

}  // namespace
}  // namespace kzero::test
