// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Values and main parameters of a checkpoint, and nothing else of it:
// LoadOptions::weights_only.
#include <gtest/gtest.h>

#include <kzero/checkpoint.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/edited_file.hpp"
#include "io/logged_words.hpp"
#include "io/scratch_folder.hpp"
#include "io/state_arrays.hpp"
#include "io/typed_model.hpp"

namespace kzero::test {
namespace {

Snapshot taken(ShardedOptimizer& optimizer) {
  return snapshot(optimizer, MPI_COMM_WORLD);
}

std::vector<LoadOptions> all_ways() {
  std::vector<LoadOptions> all;
  for (const Match match : {Match::strict, Match::partial})
    for (const Engine engine : {Engine::direct, Engine::gather})
      all.push_back({.match = match, .weights_only = true, .engine = engine});
  return all;
}

constexpr LoadOptions weights{.weights_only = true};

/// What must be there afterwards: the file's values and main parameters, state
/// that is zero, and of all else the program's.
Snapshot mixed(const Snapshot& file, const Snapshot& program) {
  Snapshot all = program;
  for (auto& [name, value] : all) {
    const std::size_t bar = name.find('|');
    if (bar == name.npos || name.starts_with("group ")) continue;
    const std::string array = name.substr(bar + 1);
    if (array == "value" || array == "main")
      value = file.at(name);
    else
      value.assign(value.size(), '\0');
  }
  return all;
}

/// The varied model with other rules in its groups, another group, and a
/// scaler.
OptimizerOptions other_options(const Partitioning& partition) {
  OptimizerOptions options = varied_options(300, partition);
  options.rule = Sgd{.learning_rate = 0.5, .momentum = 0.25};
  options.groups["momentum"] = AdamW{.learning_rate = 0.01};
  options.groups["own"] = Lion{};
  options.scaler = DynamicScaler{.initial_scale = 1024.0};
  return options;
}

class WeightsOnly : public testing::Test {
 protected:
  /// Trains the varied model and saves it.
  Snapshot save() {
    auto saving = make_varied(world(), 600);
    write_start(saving, 1);
    train(saving, 3);
    save_checkpoint(saving, path, {{{"epoch", std::int64_t{12}}}});
    return taken(saving);
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
};

TEST_F(WeightsOnly, LeaveEverythingElseToTheProgram) {
  const Snapshot saved = save();
  int made = 0;
  for (const LoadOptions& options : all_ways()) {
    ShardedOptimizer optimizer(world(), varied_model(),
                               other_options(some_partition(made++)));
    write_start(optimizer, 2);
    train(optimizer, 2);
    const Snapshot before = taken(optimizer);
    const LoggedWords words;
    const CheckpointContent content = load_checkpoint(optimizer, path, options);
    EXPECT_TRUE(equal(taken(optimizer), mixed(saved, before)));
    EXPECT_TRUE(padding_is_zero(optimizer));
    EXPECT_EQ(optimizer.steps(), 2);
    EXPECT_EQ(optimizer.update_count({0}), 0);
    EXPECT_EQ(optimizer.loss_scale(), 1024.0);
    EXPECT_EQ(content.step, 3);
    EXPECT_EQ(content.user.at("epoch"), UserValue(std::int64_t{12}));
    EXPECT_TRUE(content.missing.empty());
    EXPECT_TRUE(words.warnings().empty());
    train(optimizer, 1);
    EXPECT_EQ(optimizer.update_count({0}), 1);
  }
}

/// Writes a file as other programs would: values, no state, no groups.
void write_values(const std::filesystem::path& path, OptimizerState state) {
  state.groups.clear();
  detail::FileLayout layout = detail::layout_of(state);
  layout.content.step = 5;
  layout.scaler.reset();
  for (auto& parameter : layout.parameters) {
    parameter.arrays.resize(1);
    parameter.group.clear();
  }
  const detail::StateSource source(state);
  detail::CheckpointWriter writer(path, layout);
  for (const auto& parameter : layout.parameters) {
    std::vector<std::byte> bytes(
        state.parameter(parameter.name).find("value")->bytes.size());
    source.read(parameter, parameter.arrays[0], bytes.data());
    writer.write(parameter, parameter.arrays[0], bytes.data());
  }
  writer.finish();
  writer.take_name();
}

class WeightsOnlyOf : public WeightsOnly,
                      public testing::WithParamInterface<DType> {
 protected:
  /// The same on every rank.
  OptimizerState trained() {
    auto optimizer = TypedModel(GetParam(), Memory::buckets).make(600);
    write_start(optimizer, 1);
    train(optimizer, 3);
    save_checkpoint(optimizer, folder / "whole.h5");
    std::optional<OptimizerState> state;
    for (int rank = 0; rank < optimizer.communicator()->size(); ++rank) {
      auto own = optimizer.consolidate(rank);
      if (own) state = std::move(own);
    }
    return *state;
  }

  /// The file's without its state.
  static OptimizerState without_state(OptimizerState file, bool with_main) {
    for (ParameterState& parameter : file.parameters) {
      parameter.update_count = 0;
      for (StateArray& array : parameter.arrays)
        if (array.name != "value" && array.name != "main")
          std::ranges::fill(array.bytes, std::byte(0));
      if (!with_main)
        std::erase_if(parameter.arrays, [](const StateArray& array) {
          return array.name == "main";
        });
    }
    return file;
  }
};

// Main parameters too are made from the values, wherever those lie.
TEST_P(WeightsOnlyOf, ComeFromAFileOfValues) {
  const OptimizerState state = trained();
  if (world()->rank() == 0) write_values(path, state);
  const OptimizerState values = without_state(state, false);
  int made = 0;
  for (LoadOptions options : all_ways())
    for (const DType dtype : all_types)
      for (const Memory memory : {Memory::buckets, Memory::own}) {
        SCOPED_TRACE(to_string(dtype));
        if (dtype != GetParam()) options.other_type = OtherType::convert;
        auto optimizer =
            TypedModel(dtype, memory).make(300, some_partition(made++));
        disturb(optimizer);
        EXPECT_EQ(load_checkpoint(optimizer, path, options).step, 5);
        EXPECT_TRUE(has(taken(optimizer), converted(values, dtype)));
        EXPECT_EQ(optimizer.steps(), 1);
        EXPECT_TRUE(padding_is_zero(optimizer));
      }
}

TEST_P(WeightsOnlyOf, ComeFromAWholeFile) {
  const OptimizerState file = without_state(trained(), true);
  int made = 2;
  for (LoadOptions options : all_ways())
    for (const DType dtype : all_types) {
      SCOPED_TRACE(to_string(dtype));
      options.other_type = OtherType::convert;
      auto optimizer =
          TypedModel(dtype, Memory::own).make(300, some_partition(made++));
      disturb(optimizer);
      EXPECT_EQ(load_checkpoint(optimizer, folder / "whole.h5", options).step,
                3);
      EXPECT_TRUE(has(taken(optimizer), converted(file, dtype)));
    }
}

// With Match::partial alone the file may lack everything but values as well.
TEST_P(WeightsOnlyOf, AreWhatAPartialLoadFinds) {
  const OptimizerState state = trained();
  if (world()->rank() == 0) write_values(path, state);
  const OptimizerState values = without_state(state, false);
  for (const Engine engine : {Engine::direct, Engine::gather})
    for (const Memory memory : {Memory::buckets, Memory::own}) {
      auto optimizer = TypedModel(GetParam(), memory).make(300);
      disturb(optimizer);
      load_checkpoint(optimizer, path,
                      {.match = Match::partial, .engine = engine});
      EXPECT_TRUE(has(taken(optimizer), converted(values, GetParam())));
      EXPECT_EQ(optimizer.steps(), 5);
    }
}

TEST_P(WeightsOnlyOf, ComeFromMemory) {
  OptimizerState state = trained();
  state.steps = -1;  // which is not looked at
  state.groups.clear();
  const OptimizerState file = without_state(state, true);
  auto optimizer = TypedModel(GetParam(), Memory::own).make(300);
  disturb(optimizer);
  optimizer.step();
  optimizer.load_state(state, optimizer.communicator()->size() - 1, weights);
  EXPECT_TRUE(has(taken(optimizer), converted(file, GetParam())));
  EXPECT_EQ(optimizer.steps(), 2);
}

INSTANTIATE_TEST_SUITE_P(Files, WeightsOnlyOf, testing::ValuesIn(all_types),
                         [](const auto& dtype) {
                           return std::string(to_string(dtype.param));
                         });

TEST_F(WeightsOnly, StillComeFromTheSameModel) {
  save();
  ParameterSet model;
  model.add("layer 1/weight", {7, 31}, typed(DType::bfloat16));
  model.add("five", {5}, typed(DType::float64));
  model.add("own", {2});
  ShardedOptimizer other(world(), model, {});
  write_start(other, 2);
  const Snapshot before = taken(other);
  const std::string message =
      checkpoint_error([&] { load_checkpoint(other, path, weights); });
  EXPECT_TRUE(says(
      message, {"\"layer 1/weight\" has the shape (31, 7), expected (7, 31)",
                "\"five\" is float32, expected float64", "file: \"own\"",
                "does not have: \"layer 1/bias\"", "OtherType::convert"}));
  EXPECT_EQ(message.find("group"), message.npos);
  EXPECT_TRUE(equal(taken(other), before));

  const CheckpointContent content = load_checkpoint(
      other, path, {.match = Match::partial, .weights_only = true});
  EXPECT_EQ(content.missing, std::vector<std::string>{"own"});
  EXPECT_EQ(content.misshaped,
            (std::vector<std::string>{"layer 1/weight", "five"}));
  EXPECT_TRUE(equal(taken(other), before));
}

// Numbers that would be refused are not looked at.
TEST_F(WeightsOnly, PassOverTheNumbersBesideThem) {
  const Snapshot saved = save();
  if (world()->rank() == 0)
    edit_manifest(path, [](Json& json) {
      json["skipped_total"] = -3;
      json["groups"]["plain"]["hyperparameters"]["learning_rate"] = -1.0;
      json["scaler"] = {{"kind", "of tomorrow"}};
      for (Json& parameter : json["parameters"]) parameter["update_count"] = -1;
    });
  auto optimizer = make_varied(world(), 300);
  write_start(optimizer, 2);
  const Snapshot before = taken(optimizer);
  EXPECT_TRUE(says(checkpoint_error([&] { load_checkpoint(optimizer, path); }),
                   {"update count"}));
  const auto content = load_latest(optimizer, folder.path(), weights);
  ASSERT_TRUE(content.has_value());
  EXPECT_TRUE(equal(taken(optimizer), mixed(saved, before)));
}

}  // namespace
}  // namespace kzero::test
