// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One checkpoint with all that there is: every type, several rules, a dynamic
// scaler that has met overflows, user data.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <kzero/checkpoint.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/python_with_h5py.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

/// Beside AdamW and Sgd.
Rule third_rule() { return Lion{.learning_rate = 0.01}; }

OptimizerOptions everything(std::int64_t bucket_bytes) {
  OptimizerOptions options = varied_options(bucket_bytes);
  options.groups["plain"] = third_rule();
  options.clip_norm = 1.0;
  options.scaler = Scaler::dynamic(
      {.initial_scale = 1024.0, .growth_interval = 2, .hysteresis = 2});
  return options;
}

UserData user_data() {
  return {{"epoch", std::int64_t{3}},
          {"loss", 0.25},
          {"note", std::string("größer")},
          {"files", std::vector<std::string>{"a", "b"}},
          {"image", UserArray<float>{{2, 1}, {0.5f, -1.f}}}};
}

constexpr int saved_after = 6;
constexpr int steps_in_all = saved_after + 3;

/// One before the checkpoint, one behind it.
bool overflows(int step) { return step == 3 || step == saved_after + 1; }

/// Steps [first, last), of which the last rank makes some overflow.
void train_scaled(ShardedOptimizer& optimizer, int first, int last) {
  const auto& communicator = *optimizer.communicator();
  const bool spoils = communicator.rank() == communicator.size() - 1;
  for (int step = first; step < last; ++step) {
    for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
      fill_gradient(optimizer, {p}, [&](std::int64_t i) {
        if (spoils && overflows(step) && p == 6)
          return std::numeric_limits<double>::infinity();
        if (spoils && overflows(step) && p == 7)
          return std::numeric_limits<double>::quiet_NaN();
        return communicator.rank() == 0
                   ? scatter(step, p, i) * optimizer.loss_scale()
                   : 0.0;
      });
    optimizer.step();
  }
}

class Everything : public testing::Test {
 protected:
  Everything() {
    write_start(optimizer, 1);
    train_scaled(optimizer, 0, saved_after);
    save_checkpoint(optimizer, path, {user_data()});
    saved = snapshot(optimizer, MPI_COMM_WORLD);
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
  ShardedOptimizer optimizer{world(), varied_model(), everything(600)};
  Snapshot saved;
};

TEST_F(Everything, HasHappened) {
  const auto counters = detail::OptimizerAccess::counters(optimizer);
  EXPECT_EQ(counters.steps, 5);
  EXPECT_EQ(counters.skipped_total, 1);
  // 1024 grows at steps 1 and 5; the overflow at step 3 takes the hysteresis.
  EXPECT_EQ(optimizer.loss_scale(), 4096.0);
  for (const double value : read_all(optimizer))
    ASSERT_TRUE(std::isfinite(value));
}

TEST_F(Everything, ResumesExactly) {
  ShardedOptimizer other(world(), varied_model(), everything(5000));
  write_start(other, 2);
  train_scaled(other, 0, 2);
  const CheckpointContent content = load_checkpoint(other, path);
  EXPECT_TRUE(equal(snapshot(other, MPI_COMM_WORLD), saved));
  EXPECT_EQ(content.user, user_data());
  train_scaled(optimizer, saved_after, steps_in_all);
  train_scaled(other, saved_after, steps_in_all);
  const Snapshot uninterrupted = snapshot(optimizer, MPI_COMM_WORLD);
  EXPECT_TRUE(equal(snapshot(other, MPI_COMM_WORLD), uninterrupted));
  EXPECT_NE(uninterrupted.at("five|value"), saved.at("five|value"));
  EXPECT_EQ(other.loss_scale(), optimizer.loss_scale());
}

TEST_F(Everything, KnowsItsRules) {
  OptimizerOptions options = everything(600);
  options.groups["plain"] = Sgd{.learning_rate = 0.75};
  ShardedOptimizer other(world(), varied_model(), options);
  const std::string third(third_rule().name());
  EXPECT_TRUE(says(checkpoint_error([&] { load_checkpoint(other, path); }),
                   {"\"plain\" has the rule", third.c_str(), "\"sgd\"",
                    "OtherRule::start_anew"}));
  load_checkpoint(other, path, {.other_rule = OtherRule::start_anew});
  const Snapshot after = snapshot(other, MPI_COMM_WORLD);
  for (const char* key : {"five|value", "layer 1/bias|value",
                          "layer 1/bias|main", "double|exp_avg", "scale"})
    EXPECT_EQ(after.at(key), saved.at(key)) << key;
  EXPECT_EQ(other.update_count({7}), 0);
  EXPECT_EQ(other.update_count({8}), optimizer.update_count({8}));
  EXPECT_EQ(other.group("plain").get("learning_rate"), 0.75);
}

std::string hexadecimal(const std::string& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += {digits[byte >> 4], digits[byte & 0xf]};
  }
  return text;
}

/// What the file must hold, in the words of read_everything_with_h5py.py.
nlohmann::json expectations(ShardedOptimizer& optimizer,
                            const Snapshot& saved) {
  using detail::OptimizerAccess;
  nlohmann::json parameters = nlohmann::json::array();
  for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i) {
    const ParameterInfo& info = optimizer.parameters()[{i}];
    nlohmann::json arrays;
    arrays["value"] = hexadecimal(saved.at(info.name + "|value"));
    for (const auto name : OptimizerAccess::state_names(optimizer, {i}))
      arrays[std::string(name)] =
          hexadecimal(saved.at(info.name + "|" + std::string(name)));
    parameters.push_back({{"name", info.name},
                          {"dtype", to_string(info.dtype)},
                          {"shape", info.extents},
                          {"group", info.group},
                          {"update_count", optimizer.update_count({i})},
                          {"arrays", arrays}});
  }
  nlohmann::json rules;
  for (const char* name : {"default", "plain", "momentum", "amsgrad"})
    rules[name] = optimizer.group(name).rule();
  const auto& scale = OptimizerAccess::loss_scale(optimizer);
  return {{"parameters", parameters},
          {"rules", rules},
          {"scaler",
           {{"kind", "dynamic"},
            {"scale", scale.scale},
            {"good_steps", scale.good_steps},
            {"hysteresis_left", scale.hysteresis_left},
            {"growth_interval", 2},
            {"hysteresis", 2}}}};
}

TEST_F(Everything, IsReadByH5py) {
  if (optimizer.communicator()->rank() != 0) return;
  const std::string python = python_with_h5py();
  if (python.empty()) GTEST_SKIP() << "h5py is not installed";
  const std::filesystem::path expected = folder / "expected.json";
  std::ofstream(expected) << expectations(optimizer, saved);
  const auto script = std::filesystem::path(KZERO_TEST_DATA).parent_path() /
                      "io" / "read_everything_with_h5py.py";
  const std::string command = python + " '" + script.string() + "' '" +
                              path.string() + "' '" + expected.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace kzero::test
