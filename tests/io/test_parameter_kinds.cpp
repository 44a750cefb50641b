// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Frozen and tied parameters, and groups without parameters, in checkpoints.
#include <gtest/gtest.h>

#include <kzero/checkpoint.hpp>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

constexpr LoadOptions partial{.match = Match::partial};

enum class Kind { trained, frozen };
enum class Head { own, tied };

ShardedOptimizer make(Kind kind, Head head, std::int64_t bucket_bytes = 300) {
  ParameterSet model;
  ParameterOptions half = typed(DType::bfloat16);
  model.add("embedding", {20, 3}, half);
  half.frozen = kind == Kind::frozen;
  model.add("fixed/half", {70}, half);
  ParameterOptions single;
  single.frozen = half.frozen;
  model.add("fixed/single", {9}, single);
  model.add("weight", {65});
  ParameterOptions last = typed(DType::bfloat16);
  if (head == Head::tied) last.tied_to = "embedding";
  model.add("head", {20, 3}, last);
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.05};
  options.groups["ghost"] = Sgd{.learning_rate = 0.125, .momentum = 0.5};
  options.reduction = Reduction::sum;
  options.plan.bucket_bytes = bucket_bytes;
  // What saves and what loads are cut in different ways.
  static int made = 0;
  some_partition(made++).set(options.plan);
  return ShardedOptimizer(world(), model, options);
}

Snapshot taken(ShardedOptimizer& optimizer) {
  return snapshot(optimizer, MPI_COMM_WORLD);
}

/// Entries of this parameter, without its name.
Snapshot only(const Snapshot& all, const std::string& name) {
  Snapshot some;
  for (const auto& [key, value] : all)
    if (key.starts_with(name + "|")) some[key.substr(name.size())] = value;
  return some;
}

bool is_zero(const std::string& bytes) {
  return bytes.find_first_not_of('\0') == bytes.npos;
}

class ParameterKinds : public testing::Test {
 protected:
  /// Trains, saves and returns what was saved.
  Snapshot save(Kind kind, Head head) {
    auto optimizer = make(kind, head);
    write_start(optimizer, 1);
    train(optimizer, 3);
    optimizer.group("ghost").set("learning_rate", 0.0625);
    save_checkpoint(optimizer, path);
    return taken(optimizer);
  }

  std::string load_error(ShardedOptimizer& optimizer) {
    const Snapshot before = taken(optimizer);
    const std::string message =
        checkpoint_error([&] { load_checkpoint(optimizer, path); });
    EXPECT_TRUE(equal(taken(optimizer), before));
    return message;
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
};

TEST_F(ParameterKinds, AreStoredOnceAndWithoutState) {
  const Snapshot saved = save(Kind::frozen, Head::tied);
  if (world()->rank() != 0) return;
  const detail::CheckpointReader reader(path);
  const detail::FileLayout layout = reader.layout();
  std::map<std::string, detail::ParameterLayout> found;
  for (const auto& each : layout.parameters) found[each.name] = each;
  EXPECT_EQ(found.size(), 4u);
  EXPECT_FALSE(found.contains("head"));
  for (const char* name : {"fixed/half", "fixed/single"}) {
    const auto& parameter = found.at(name);
    EXPECT_EQ(parameter.arrays.size(), 1u) << name;
    EXPECT_EQ(parameter.update_count, 0) << name;
    const std::string& value = saved.at(std::string(name) + "|value");
    std::string bytes(value.size(), '?');
    reader.read(parameter, parameter.arrays[0], bytes.data());
    EXPECT_EQ(bytes, value) << name;
  }
  EXPECT_EQ(found.at("embedding").arrays.size(), 4u);
  EXPECT_EQ(found.at("embedding").update_count, 3);
  EXPECT_EQ(layout.groups.back().name, "ghost");
}

TEST_F(ParameterKinds, ComeBack) {
  const Snapshot saved = save(Kind::frozen, Head::tied);
  for (const LoadOptions& options : {LoadOptions{}, partial}) {
    auto optimizer = make(Kind::frozen, Head::tied, 1 << 20);
    write_start(optimizer, 2);
    train(optimizer, 1);
    const CheckpointContent content = load_checkpoint(optimizer, path, options);
    EXPECT_TRUE(equal(taken(optimizer), saved));
    EXPECT_EQ(optimizer.group("ghost").get("learning_rate"), 0.0625);
    EXPECT_TRUE(padding_is_zero(optimizer));
    EXPECT_TRUE(content.missing.empty());
    EXPECT_TRUE(content.extra.empty());
    train(optimizer, 1);
    EXPECT_EQ(taken(optimizer).at("fixed/half|value"),
              saved.at("fixed/half|value"));
  }
}

TEST_F(ParameterKinds, FreezeWhatWasTrained) {
  const Snapshot saved = save(Kind::trained, Head::tied);
  auto optimizer = make(Kind::frozen, Head::tied);
  write_start(optimizer, 2);
  EXPECT_TRUE(says(load_error(optimizer),
                   {"\"fixed/half\" arrays that the model does not have: "
                    "\"main\", \"exp_avg\", \"exp_avg_sq\"",
                    "\"fixed/single\""}));
  const CheckpointContent content = load_checkpoint(optimizer, path, partial);
  const Snapshot after = taken(optimizer);
  for (const char* name : {"fixed/half", "fixed/single"})
    EXPECT_EQ(after.at(std::string(name) + "|value"),
              saved.at(std::string(name) + "|value"));
  for (const char* name : {"embedding", "weight"})
    EXPECT_TRUE(equal(only(after, name), only(saved, name))) << name;
  EXPECT_TRUE(content.misshaped.empty());
}

TEST_F(ParameterKinds, TrainWhatWasFrozen) {
  const Snapshot saved = save(Kind::frozen, Head::tied);
  auto optimizer = make(Kind::trained, Head::tied);
  write_start(optimizer, 2);
  train(optimizer, 2);
  EXPECT_TRUE(says(load_error(optimizer),
                   {"\"fixed/half\" arrays missing in the file: \"main\""}));
  load_checkpoint(optimizer, path, partial);
  const Snapshot after = taken(optimizer);
  for (const std::string name : {"fixed/half", "fixed/single"}) {
    EXPECT_EQ(after.at(name + "|value"), saved.at(name + "|value"));
    EXPECT_TRUE(is_zero(after.at(name + "|exp_avg")));
    EXPECT_TRUE(is_zero(after.at(name + "|updates")));
  }
  const std::string& half = saved.at("fixed/half|value");
  std::string wide;
  for (std::size_t i = 0; i < half.size(); i += 2)
    wide += std::string(2, '\0') + half.substr(i, 2);
  EXPECT_EQ(after.at("fixed/half|main"), wide);
  EXPECT_TRUE(equal(only(after, "weight"), only(saved, "weight")));
  EXPECT_TRUE(padding_is_zero(optimizer));
  train(optimizer, 1);
}

TEST_F(ParameterKinds, TieWhatWasNot) {
  const Snapshot saved = save(Kind::frozen, Head::own);
  for (const LoadOptions& options : {LoadOptions{}, partial}) {
    auto optimizer = make(Kind::frozen, Head::tied);
    write_start(optimizer, 2);
    const CheckpointContent content = load_checkpoint(optimizer, path, options);
    const Snapshot after = taken(optimizer);
    EXPECT_TRUE(equal(only(after, "embedding"), only(saved, "embedding")));
    EXPECT_EQ(after.at("head|value"), saved.at("embedding|value"));
    EXPECT_TRUE(content.extra.empty());
  }
}

TEST_F(ParameterKinds, UntieWhatWasTied) {
  const Snapshot saved = save(Kind::frozen, Head::tied);
  auto optimizer = make(Kind::frozen, Head::own);
  write_start(optimizer, 2);
  train(optimizer, 2);
  const Snapshot before = taken(optimizer);
  EXPECT_TRUE(says(load_error(optimizer), {"missing in the file: \"head\""}));
  const CheckpointContent content = load_checkpoint(optimizer, path, partial);
  EXPECT_EQ(content.missing, std::vector<std::string>{"head"});
  const Snapshot after = taken(optimizer);
  EXPECT_TRUE(equal(only(after, "embedding"), only(saved, "embedding")));
  EXPECT_TRUE(equal(only(after, "head"), only(before, "head")));
}

}  // namespace
}  // namespace kzero::test
