// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checkpoints of other models and other rules: what is loaded, what stays, what
// starts anew.
#include <gtest/gtest.h>

#include <kzero/checkpoint.hpp>
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_model.hpp"
#include "io/logged_words.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

using Names = std::vector<std::string>;
constexpr LoadOptions partial{.match = Match::partial};
constexpr LoadOptions anew{.other_rule = OtherRule::start_anew};

struct Declared {
  std::string name;
  std::vector<std::int64_t> extents;
  DType dtype = DType::float32;
  std::string group = "default";
};

ShardedOptimizer make(const std::vector<Declared>& parameters,
                      const std::map<std::string, Rule>& groups,
                      std::int64_t bucket_bytes = 600) {
  ParameterSet model;
  for (const Declared& each : parameters) {
    ParameterOptions options = typed(each.dtype);
    options.group = each.group;
    model.add(each.name, each.extents, options);
  }
  OptimizerOptions options;
  options.groups = groups;
  options.reduction = Reduction::sum;
  options.plan.bucket_bytes = bucket_bytes;
  return ShardedOptimizer(world(), model, options);
}

void start(ShardedOptimizer& optimizer, std::int64_t seed, int steps) {
  write_start(optimizer, seed);
  train(optimizer, steps);
}

Snapshot taken(ShardedOptimizer& optimizer) {
  return snapshot(optimizer, MPI_COMM_WORLD);
}

/// Entries of these parameters, without their names.
Snapshot only(const Snapshot& all, const std::string& name) {
  Snapshot some;
  for (const auto& [key, value] : all)
    if (key.starts_with(name + "|")) some[key.substr(name.size())] = value;
  return some;
}

bool is_zero(const std::string& bytes) {
  return bytes.find_first_not_of('\0') == bytes.npos;
}

/// float32 bytes of 16-bit elements, made from their bits.
std::string widened_bfloat16(const std::string& bytes) {
  std::string wide;
  for (std::size_t i = 0; i < bytes.size(); i += 2)
    wide += std::string(2, '\0') + bytes.substr(i, 2);
  return wide;
}

/// Its members are valid only together.
struct Mixed {
  static constexpr std::string_view name = "mixed";
  static constexpr std::array<std::string_view, 0> state = {};
  double a = 0.5;
  double b = 0.5;
  static constexpr std::array<Hyperparameter<Mixed>, 2> hyperparameters = {
      {{"a", &Mixed::a}, {"b", &Mixed::b}}};

  void check() const {
    if (a + b != 1.0) throw InvalidArgument("mixed: a + b is not 1");
  }

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T*) const {
    p -= T(a) * g;
  }
};

class LoadOptionsTest : public testing::Test {
 protected:
  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
};

const std::vector<Declared> old_model = {{"gone", {5}},
                                         {"a", {31, 7}, DType::bfloat16},
                                         {"b", {13}},
                                         {"c", {5}, DType::float16},
                                         {"reshaped", {9}},
                                         {"retyped", {130}, DType::float32},
                                         {"none", {0}},
                                         {"gone too", {2, 2}, DType::bfloat16},
                                         {"d", {67}, DType::float64}};
const std::vector<Declared> new_model = {
    {"a", {31, 7}, DType::bfloat16},
    {"new too", {70}, DType::bfloat16},
    {"d", {67}, DType::float64},
    {"c", {5}, DType::float16},
    {"reshaped", {3, 3}},
    {"retyped", {130}, DType::float64},
    {"none", {0}},
    {"new", {3}},  // between two that are loaded
    {"b", {13}},
    {"new, last", {65}, DType::float64}};
const std::set<std::string> shared = {"a", "b", "c", "d", "none"};

// Loaded and other parameters lie side by side in shards and buckets.
TEST_F(LoadOptionsTest, PartialLoadsWhatIsShared) {
  auto saving = make(old_model, {{"default", AdamW{.learning_rate = 0.05}}});
  start(saving, 1, 3);
  save_checkpoint(saving, path);
  const Snapshot saved = taken(saving);
  for (const std::int64_t bucket_bytes : {300, 1 << 20}) {
    auto optimizer = make(new_model, {{"default", AdamW{}}}, bucket_bytes);
    start(optimizer, 2, 2);
    const ParameterId kept = optimizer.parameters().find("new").value();
    const ParameterId taken_over = optimizer.parameters().find("a").value();
    // What stays is each rank's own.
    const int rank = optimizer.communicator()->rank();
    fill_view(optimizer.parameter<float*>(kept),
              [&](std::int64_t i) { return rank + i; });
    const Snapshot before = taken(optimizer);

    const CheckpointContent content = load_checkpoint(optimizer, path, partial);
    EXPECT_EQ(content.missing, (Names{"new too", "new", "new, last"}));
    EXPECT_EQ(content.misshaped, (Names{"reshaped", "retyped"}));
    EXPECT_EQ(content.extra, (Names{"gone", "gone too"}));
    EXPECT_EQ(content.step, 3);

    const Snapshot after = taken(optimizer);
    for (const Declared& each : new_model) {
      const Snapshot& source = shared.contains(each.name) ? saved : before;
      EXPECT_TRUE(equal(only(after, each.name), only(source, each.name)))
          << each.name;
    }
    EXPECT_EQ(after.at("steps"), saved.at("steps"));
    EXPECT_EQ(optimizer.group("default").get("learning_rate"), 0.05);
    EXPECT_EQ(optimizer.update_count(taken_over), 3);
    EXPECT_EQ(optimizer.update_count(kept), 2);
    EXPECT_TRUE(padding_is_zero(optimizer));
    optimizer.broadcast_parameters();
    train(optimizer, 1);
    EXPECT_EQ(optimizer.update_count(taken_over), 4);
    EXPECT_EQ(optimizer.update_count(kept), 3);
  }
}

TEST_F(LoadOptionsTest, StrictNamesEverythingAndChangesNothing) {
  auto saving = make(old_model, {{"default", AdamW{}}});
  save_checkpoint(saving, path);
  auto optimizer = make(new_model, {{"default", AdamW{}}});
  start(optimizer, 2, 2);
  const Snapshot before = taken(optimizer);
  EXPECT_TRUE(
      says(checkpoint_error([&] { load_checkpoint(optimizer, path); }),
           {"missing in the file: \"new too\", \"new\", \"new, last\"",
            "does not have: \"gone\", \"gone too\"",
            "\"reshaped\" has the shape (9), expected (3, 3)",
            "\"retyped\" is float32, expected float64", "Match::partial"}));
  EXPECT_TRUE(equal(taken(optimizer), before));
}

TEST_F(LoadOptionsTest, PartialIsStrictOfTheSameModel) {
  auto saving = make_varied(world(), 600);
  start(saving, 1, 3);
  save_checkpoint(saving, path);
  auto optimizer = make_varied(world(), 2000);
  start(optimizer, 2, 1);
  const CheckpointContent content = load_checkpoint(optimizer, path, partial);
  EXPECT_TRUE(equal(taken(optimizer), taken(saving)));
  EXPECT_TRUE(content.missing.empty());
  EXPECT_TRUE(content.extra.empty());
  EXPECT_TRUE(content.misshaped.empty());
}

TEST_F(LoadOptionsTest, PartialOfNothingSharedLeavesAll) {
  auto saving = make({{"x", {7}}}, {});
  start(saving, 1, 1);
  save_checkpoint(saving, path);
  auto optimizer =
      make({{"y", {7}, DType::bfloat16, "g"}}, {{"g", Sgd{.momentum = 0.5}}});
  start(optimizer, 2, 2);
  const Snapshot before = taken(optimizer);
  const CheckpointContent content = load_checkpoint(optimizer, path, partial);
  EXPECT_EQ(content.missing, Names{"y"});
  EXPECT_EQ(content.extra, Names{"x"});
  EXPECT_TRUE(equal(only(taken(optimizer), "y"), only(before, "y")));
  EXPECT_EQ(optimizer.group("g").get("momentum"), 0.5);
}

// Groups go by name, and a parameter takes its state to one of the same rule.
TEST_F(LoadOptionsTest, PartialFollowsParametersIntoOtherGroups) {
  const Rule adamw = AdamW{.learning_rate = 0.05};
  auto saving = make({{"stays", {70}},
                      {"moves", {70}},
                      {"half", {30}, DType::bfloat16, "old"}},
                     {{"default", adamw}, {"old", Sgd{.momentum = 0.9}}});
  start(saving, 1, 3);
  save_checkpoint(saving, path);
  const Snapshot saved = taken(saving);
  auto optimizer = make({{"stays", {70}},
                         {"moves", {70}, DType::float32, "new"},
                         {"half", {30}, DType::bfloat16}},
                        {{"default", AdamW{.learning_rate = 0.01}},
                         {"new", AdamW{.learning_rate = 0.02}}});
  start(optimizer, 2, 2);
  optimizer.group("new").set("learning_rate", 0.03);
  EXPECT_TRUE(
      says(checkpoint_error([&] { load_checkpoint(optimizer, path); }),
           {"\"moves\" is in the group \"default\", expected \"new\"",
            "groups missing in the file: \"new\"", "not have: \"old\""}));

  load_checkpoint(optimizer, path, partial);
  const Snapshot after = taken(optimizer);
  for (const char* name : {"stays", "moves"})
    EXPECT_TRUE(equal(only(after, name), only(saved, name))) << name;
  EXPECT_EQ(after.at("half|value"), saved.at("half|value"));
  EXPECT_EQ(after.at("half|main"), saved.at("half|main"));
  EXPECT_TRUE(is_zero(after.at("half|exp_avg")));
  EXPECT_TRUE(is_zero(after.at("half|exp_avg_sq")));
  EXPECT_EQ(optimizer.update_count({2}), 0);
  EXPECT_EQ(optimizer.group("default").get("learning_rate"), 0.05);
  EXPECT_EQ(optimizer.group("new").get("learning_rate"), 0.03);
  EXPECT_TRUE(padding_is_zero(optimizer));
}

// One rule, other options: other state.
TEST_F(LoadOptionsTest, PartialStartsOtherStateAnew) {
  const std::vector<Declared> model = {{"p", {70}, DType::bfloat16},
                                       {"q", {9}}};
  const Sgd plain{.learning_rate = 0.5};
  const Sgd heavy{.learning_rate = 0.25, .momentum = 0.75};
  for (const auto& [from, to] :
       {std::pair(plain, heavy), std::pair(heavy, plain)}) {
    auto saving = make(model, {{"default", from}});
    start(saving, 1, 3);
    save_checkpoint(saving, path);
    const Snapshot saved = taken(saving);
    auto optimizer = make(model, {{"default", to}});
    start(optimizer, 2, 2);
    EXPECT_TRUE(
        says(checkpoint_error([&] { load_checkpoint(optimizer, path); }),
             {"\"p\" arrays", "\"momentum_buffer\""}));

    const LoggedWords words;
    load_checkpoint(optimizer, path, partial);
    const Snapshot after = taken(optimizer);
    for (const char* key : {"p|value", "p|main", "q|value"})
      EXPECT_EQ(after.at(key), saved.at(key)) << key;
    if (to.momentum != 0) {
      EXPECT_TRUE(is_zero(after.at("p|momentum_buffer")));
      EXPECT_TRUE(is_zero(after.at("q|momentum_buffer")));
    }
    EXPECT_EQ(optimizer.update_count({0}), 0);
    EXPECT_EQ(optimizer.update_count({1}), 0);
    EXPECT_EQ(optimizer.group("default").get("learning_rate"),
              from.learning_rate);
    EXPECT_EQ(optimizer.group("default").get("momentum"), to.momentum);
    const bool root = optimizer.communicator()->rank() == 0;
    ASSERT_EQ(words.warnings().size(), root ? 1u : 0u);
    if (root) {
      EXPECT_TRUE(says(words.warnings()[0],
                       {"load_checkpoint", "c.h5", "\"default\"", "momentum",
                        "the program keeps its own value"}));
    }
    EXPECT_TRUE(padding_is_zero(optimizer));
    train(optimizer, 1);
  }
}

// As if p had been frozen when the file was written: it has a value and nothing
// else.
TEST_F(LoadOptionsTest, PartialWidensTheValueWhereThereIsNoMain) {
  auto saving =
      make({{"p", {70}, DType::bfloat16}, {"q", {9}}}, {{"default", AdamW{}}});
  start(saving, 1, 3);
  const Snapshot saved = taken(saving);
  if (saving.communicator()->rank() == 0) {
    detail::FileLayout layout = detail::layout_of(saving, {});
    layout.parameters[0].arrays.resize(1);
    layout.parameters[0].update_count = 0;
    detail::CheckpointWriter writer(path, layout);
    for (const auto& parameter : layout.parameters)
      for (const auto& array : parameter.arrays)
        writer.write(parameter, array,
                     saved.at(parameter.name + "|" + array.name).data());
    writer.finish();
    writer.take_name();
  }
  auto optimizer = make({{"q", {9}}, {"p", {70}, DType::bfloat16}},
                        {{"default", AdamW{}}}, 100);
  start(optimizer, 2, 2);
  EXPECT_TRUE(
      says(checkpoint_error([&] { load_checkpoint(optimizer, path); }),
           {"\"p\" arrays missing in the file: \"main\", \"exp_avg\""}));
  load_checkpoint(optimizer, path, partial);
  const Snapshot after = taken(optimizer);
  EXPECT_TRUE(equal(only(after, "q"), only(saved, "q")));
  EXPECT_EQ(after.at("p|value"), saved.at("p|value"));
  EXPECT_EQ(after.at("p|main"), widened_bfloat16(saved.at("p|value")));
  EXPECT_TRUE(is_zero(after.at("p|exp_avg")));
  EXPECT_TRUE(is_zero(after.at("p|exp_avg_sq")));
  EXPECT_EQ(optimizer.update_count({1}), 0);
  EXPECT_EQ(optimizer.update_count({0}), 3);
}

TEST_F(LoadOptionsTest, SetsHyperparametersThatAreValidOnlyTogether) {
  auto saving = make({{"p", {7}}}, {{"default", Mixed{0.25, 0.75}}});
  save_checkpoint(saving, path);
  for (const LoadOptions& options : {LoadOptions{}, partial}) {
    auto optimizer = make({{"p", {7}}}, {{"default", Mixed{}}});
    const LoggedWords words;
    load_checkpoint(optimizer, path, options);
    EXPECT_EQ(optimizer.group("default").get("a"), 0.25);
    EXPECT_EQ(optimizer.group("default").get("b"), 0.75);
    EXPECT_TRUE(words.warnings().empty());
  }
}

// What a rank has set alone does not decide what the file may hold there.
TEST_F(LoadOptionsTest, SetsTheSameHyperparametersOnEveryRank) {
  const Sgd steady{.momentum = 0.5};
  Sgd fast = steady;
  fast.nesterov = true;
  auto saving = make({{"p", {7}}}, {{"default", fast}});
  save_checkpoint(saving, path);
  auto optimizer = make({{"p", {7}}}, {{"default", steady}});
  if (optimizer.communicator()->rank() == 1)
    optimizer.group("default").set("dampening", 0.5);
  load_checkpoint(optimizer, path);
  EXPECT_EQ(optimizer.group("default").get("nesterov"), 1.0);
  EXPECT_EQ(optimizer.group("default").get("dampening"), 0.0);
  train(optimizer, 1);
}

class OtherRules : public LoadOptionsTest {
 protected:
  OtherRules() {
    OptimizerOptions options = varied_options(600);
    options.groups["momentum"] = AdamW{.learning_rate = 0.01};
    ShardedOptimizer saving(world(), varied_model(), options);
    start(saving, 1, 3);
    save_checkpoint(saving, path);
    saved = taken(saving);
    start(optimizer, 2, 2);
    optimizer.group("momentum").set("learning_rate", 0.375);
  }

  Snapshot saved;
  ShardedOptimizer optimizer = make_varied(world(), 300);
};

TEST_F(OtherRules, AreRefused) {
  const Snapshot before = taken(optimizer);
  for (const LoadOptions& options : {LoadOptions{}, partial}) {
    EXPECT_TRUE(says(
        checkpoint_error([&] { load_checkpoint(optimizer, path, options); }),
        {"c.h5", "\"momentum\" has the rule \"adamw\", expected \"sgd\"",
         "LoadOptions::other_rule = OtherRule::start_anew",
         "loads the parameters and starts the state anew"}));
    EXPECT_TRUE(equal(taken(optimizer), before));
  }
}

TEST_F(OtherRules, StartAnewWhereAllowed) {
  for (const Match match : {Match::strict, Match::partial}) {
    load_checkpoint(optimizer, path, {match, OtherRule::start_anew});
    const Snapshot after = taken(optimizer);
    for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i) {
      const ParameterInfo& info = optimizer.parameters()[{i}];
      if (info.group != "momentum") {
        EXPECT_TRUE(equal(only(after, info.name), only(saved, info.name)));
        continue;
      }
      for (const auto& [key, value] : only(after, info.name)) {
        if (key == "|value" || key == "|main") {
          EXPECT_EQ(value, saved.at(info.name + key)) << info.name << key;
        } else {
          EXPECT_TRUE(is_zero(value)) << info.name << key;
        }
      }
      EXPECT_EQ(optimizer.update_count({i}), 0);
    }
    EXPECT_EQ(optimizer.group("momentum").get("learning_rate"), 0.375);
    EXPECT_EQ(optimizer.group("momentum").get("momentum"), 0.9);
    EXPECT_EQ(optimizer.group("plain").get("learning_rate"), 0.25);
    EXPECT_EQ(optimizer.steps(), 3);
    EXPECT_TRUE(padding_is_zero(optimizer));
    train(optimizer, 1);
  }
}

TEST_F(OtherRules, AreStrictAboutTheRest) {
  auto other = make({{"layer 1/weight", {31, 7}, DType::bfloat16}},
                    {{"default", Sgd{}}});
  EXPECT_TRUE(
      says(checkpoint_error([&] { load_checkpoint(other, path, anew); }),
           {"\"layer 1/bias\"", "Match::partial"}));
  load_checkpoint(other, path, {Match::partial, OtherRule::start_anew});
  const Snapshot after = taken(other);
  EXPECT_EQ(after.at("layer 1/weight|main"), saved.at("layer 1/weight|main"));
  EXPECT_EQ(other.update_count({0}), 0);
}

}  // namespace
}  // namespace kzero::test
