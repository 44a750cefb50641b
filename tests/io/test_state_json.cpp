// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/state_json.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_model.hpp"
#include "io/logged_words.hpp"
#include "io/optimizer_snapshot.hpp"

namespace kzero::test {
namespace {

using Json = nlohmann::json;
using detail::OptimizerAccess;

const std::string odd_name = std::string("a\0b/\xff%2E", 8);

ShardedOptimizer make(const Scaler& scaler = Scaler::none,
                      std::int64_t bucket_bytes = 600) {
  ParameterSet model = varied_model();
  ParameterOptions odd;
  odd.group = "\xff";
  model.add(odd_name, {3}, odd);
  OptimizerOptions options = varied_options(bucket_bytes);
  options.groups["\xff"] = Sgd{.learning_rate = 0.1};
  options.scaler = scaler;
  return ShardedOptimizer(world(), model, options);
}

const Scaler dynamic = Scaler::dynamic({.initial_scale = 64.0});

/// The snapshot without the arrays.
Snapshot numbers_of(ShardedOptimizer& optimizer) {
  Snapshot all = snapshot(optimizer, MPI_COMM_WORLD);
  std::erase_if(all, [](const auto& entry) {
    const std::string& key = entry.first;
    return key.find('|') != key.npos && !key.ends_with("|updates") &&
           !key.starts_with("group ");
  });
  return all;
}

constexpr std::int64_t largest_count = std::int64_t{1} << 62;

/// Numbers with all their digits.
void set_odd_numbers(ShardedOptimizer& optimizer) {
  optimizer.group("default").set("learning_rate", 0.1 + 0.2);
  optimizer.group("default").set("epsilon", 1.1754943508222875e-38);
  optimizer.group("plain").set("dampening", 3.4028234663852886e38);
  optimizer.group("\xff").set("dampening", -0.0);
  OptimizerAccess::set_counters(optimizer, {largest_count, 12, 2});
  OptimizerAccess::set_update_count(optimizer, {1}, 9007199254740993);
  OptimizerAccess::set_loss_scale(optimizer, {0.1, 17, 0});
}

TEST(StateJson, HasEveryNumber) {
  auto optimizer = make(dynamic);
  train(optimizer, 2);
  set_odd_numbers(optimizer);
  const Json json = Json::parse(state_json(optimizer));
  EXPECT_EQ(json.at("format"), "kzero state");
  EXPECT_EQ(json.at("format_version"), (Json{1, 1}));
  EXPECT_EQ(json.at("library_version"), version());
  EXPECT_EQ(json.at("steps"), 4611686018427387904);
  EXPECT_EQ(json.at("skipped_total"), 12);
  EXPECT_EQ(json.at("skipped_in_a_row"), 2);
  const Json& groups = json.at("groups");
  EXPECT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups.at("default").at("rule"), "adamw");
  EXPECT_EQ(groups.at("default").at("hyperparameters").at("learning_rate"),
            0.1 + 0.2);
  EXPECT_EQ(groups.at("amsgrad").at("hyperparameters").at("amsgrad"), 1.0);
  EXPECT_EQ(groups.at("%FF").at("rule"), "sgd");
  const Json& counts = json.at("update_counts");
  EXPECT_EQ(counts.size(), 13u);
  EXPECT_EQ(counts.at("layer 1%2Fweight"), 2);
  EXPECT_EQ(counts.at("layer 1%2Fbias"), 9007199254740993);
  EXPECT_EQ(counts.at("größe%2Fλ"), 2);
  EXPECT_EQ(counts.at("%2E%2E"), 2);
  EXPECT_EQ(counts.at("%252E%252E"), 2);
  EXPECT_EQ(counts.at("a%00b%2F%FF%252E"), 2);
  EXPECT_EQ(json.at("scaler"), (Json{{"kind", "dynamic"},
                                     {"scale", 0.1},
                                     {"good_steps", 17},
                                     {"hysteresis_left", 0},
                                     {"growth", 2.0},
                                     {"backoff", 0.5},
                                     {"growth_interval", 2000},
                                     {"hysteresis", 1},
                                     {"minimum", 0.0}}));
}

TEST(StateJson, IsTheSameOnEveryRank) {
  auto optimizer = make(dynamic);
  train(optimizer, 1);
  const std::string mine = state_json(optimizer);
  Snapshot roots = {{"json", mine}};
  broadcast(roots, MPI_COMM_WORLD);
  EXPECT_EQ(roots.at("json"), mine);
}

TEST(StateJson, BringsEveryNumberBack) {
  auto optimizer = make(dynamic);
  train(optimizer, 2);
  set_odd_numbers(optimizer);
  auto other = make(dynamic, 5000);
  write_start(other, 2);
  train(other, 1);
  const auto values = read_all(other);
  const LoggedWords words;
  load_state_json(other, state_json(optimizer));
  EXPECT_TRUE(equal(numbers_of(other), numbers_of(optimizer)));
  EXPECT_EQ(read_all(other), values);
  EXPECT_EQ(other.loss_scale(), 0.1);
  EXPECT_EQ(state_json(other), state_json(optimizer));
  EXPECT_TRUE(words.warnings().empty());
}

TEST(StateJson, WarnsOfAnotherScaler) {
  auto optimizer = make(Scaler::none);
  auto other = make(dynamic);
  const LoggedWords words;
  load_state_json(other, state_json(optimizer));
  const bool root = other.communicator()->rank() == 0;
  ASSERT_EQ(words.warnings().size(), root ? 1u : 0u);
  if (root) {
    EXPECT_TRUE(
        says(words.warnings()[0], {"load_state_json", "initial scale 64"}));
  }
}

TEST(StateJson, WarnsOfOtherSettingsOfTheScaler) {
  auto optimizer = make(
      Scaler::dynamic({.growth = 4.0, .growth_interval = 5, .hysteresis = 3}));
  auto other = make(dynamic);
  Json json = Json::parse(state_json(optimizer));
  const LoggedWords words;
  load_state_json(other, json.dump());
  EXPECT_EQ(OptimizerAccess::loss_scale(other).hysteresis_left, 1);
  const bool root = other.communicator()->rank() == 0;
  ASSERT_EQ(words.warnings().size(), root ? 1u : 0u);
  if (root) {
    EXPECT_TRUE(
        says(words.warnings()[0], {"load_state_json", "growth is 4",
                                   "growth_interval is 5", "hysteresis is 3"}));
  }
  // A text of format 1.0.
  for (const char* name :
       {"growth", "backoff", "growth_interval", "hysteresis", "minimum"})
    json["scaler"].erase(name);
  json["format_version"] = {1, 0};
  load_state_json(other, json.dump());
  EXPECT_EQ(words.warnings().size(), root ? 1u : 0u);
}

TEST(StateJson, LeavesNoAveragedGradient) {
  auto optimizer = make();
  train(optimizer, 1);
  const ParameterId five = optimizer.parameters().find("five").value();
  static_cast<void>(optimizer.averaged_gradient<float>(five));
  load_state_json(optimizer, state_json(optimizer));
  EXPECT_THROW(static_cast<void>(optimizer.averaged_gradient<float>(five)),
               InvalidArgument);
  train(optimizer, 1);
  static_cast<void>(optimizer.averaged_gradient<float>(five));
}

class StateJsonErrors : public testing::Test {
 protected:
  StateJsonErrors() {
    train(optimizer, 1);
    good = Json::parse(state_json(optimizer));
  }

  /// The message, which must be the same on every rank, of a text that must
  /// change nothing.
  std::string error_of(const std::string& text) {
    const Snapshot before = snapshot(optimizer, MPI_COMM_SELF);
    const std::string message =
        message_of<InvalidArgument>([&] { load_state_json(optimizer, text); });
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_SELF), before));
    Snapshot roots = {{"message", message}};
    broadcast(roots, MPI_COMM_WORLD);
    EXPECT_EQ(message, roots.at("message"));
    return message;
  }

  template <class F>
  std::string error_of_changed(F&& change) {
    Json json = good;
    change(json);
    return error_of(json.dump());
  }

  ShardedOptimizer optimizer = make(dynamic);
  Json good;
  const int last = optimizer.communicator()->size() - 1;
};

TEST_F(StateJsonErrors, OfTextsThatAreNone) {
  for (const char* text : {"", "{", "nonsense", "{} {}", "\xff", "[1"})
    EXPECT_TRUE(says(error_of(text), {"load_state_json", "parse error"}))
        << text;
  EXPECT_TRUE(says(error_of("[]"), {"an array", "expected an object"}));
  EXPECT_TRUE(says(error_of("{}"), {"has no \"format\""}));
  EXPECT_TRUE(says(error_of(R"({"format": "other"})"),
                   {"\"other\"", "expected \"kzero state\""}));
}

TEST_F(StateJsonErrors, OfVersions) {
  EXPECT_TRUE(says(error_of_changed([](Json& j) {
                     j["format_version"] = {2, 0};
                   }),
                   {"format version 2.0", "newer kzero"}));
  EXPECT_TRUE(says(error_of_changed([](Json& j) { j["format_version"] = {1}; }),
                   {"format version"}));
  Json newer = good;
  newer["format_version"] = {1, 7};
  newer["of tomorrow"] = 3;
  load_state_json(optimizer, newer.dump());
}

TEST_F(StateJsonErrors, OfTypes) {
  for (const char* count : {"steps", "skipped_total", "skipped_in_a_row"}) {
    EXPECT_TRUE(says(error_of_changed([&](Json& j) { j[count] = 1.5; }),
                     {count, "1.5", "expected an integer"}));
    EXPECT_TRUE(says(
        error_of_changed([&](Json& j) { j[count] = 9223372036854775808u; }),
        {count, "9223372036854775808", "expected an integer"}));
    for (const std::int64_t wrong : {std::int64_t{-1}, largest_count + 1})
      EXPECT_TRUE(says(error_of_changed([&](Json& j) { j[count] = wrong; }),
                       {count, std::to_string(wrong).c_str(), "expected",
                        "0 to 4611686018427387904"}));
    EXPECT_TRUE(says(error_of_changed([&](Json& j) { j.erase(count); }),
                     {"has no", count}));
  }
  EXPECT_TRUE(
      says(error_of_changed([](Json& j) {
             j["groups"]["default"]["hyperparameters"]["beta1"] = "much";
           }),
           {"/groups/default/hyperparameters/beta1", "\"much\"", "a number"}));
  EXPECT_TRUE(says(error_of_changed([](Json& j) {
                     j["update_counts"]["five"] = Json::array();
                   }),
                   {"/update_counts/five", "an array", "an integer"}));
  EXPECT_TRUE(
      says(error_of_changed([](Json& j) { j["update_counts"]["five"] = -3; }),
           {"\"five\"", "-3", "expected"}));
  EXPECT_TRUE(says(error_of_changed([](Json& j) {
                     j["update_counts"]["five"] = largest_count + 1;
                   }),
                   {"\"five\"", "4611686018427387905", "expected"}));
}

// Neither reading nor describing such a text may call itself so often.
TEST_F(StateJsonErrors, OfDeepTexts) {
  constexpr std::size_t depth = 100000;
  const std::string lists = std::string(depth, '[') + std::string(depth, ']');
  std::string objects;
  for (std::size_t i = 0; i < depth; ++i) objects += R"({"a":)";
  objects += "1" + std::string(depth, '}');
  for (const std::string& deep : {lists, objects}) {
    EXPECT_NE(error_of(deep), "");
    for (const char* place : {"format", "format_version", "steps", "groups",
                              "scaler", "update_counts"}) {
      Json json = good;
      json[place] = "HERE";
      std::string text = json.dump();
      text.replace(text.find("\"HERE\""), 6, deep);
      EXPECT_TRUE(says(error_of(text), {"load_state_json"})) << place;
    }
  }
  EXPECT_TRUE(says(error_of(std::string(depth, '[')), {"nested deeper"}));
}

TEST_F(StateJsonErrors, OfNamesThatComeTwice) {
  const auto twice = [&](const char* object, const char* name) {
    return error_of_changed([&](Json& j) {
      Json& place = j[Json::json_pointer(object)];
      place[name] = place.begin().value();
    });
  };
  EXPECT_TRUE(says(twice("/update_counts", "f%69ve"),
                   {"/update_counts", "\"five\" twice"}));
  EXPECT_TRUE(
      says(twice("/groups", "pl%61in"), {"/groups", "\"plain\" twice"}));
  EXPECT_TRUE(says(twice("/groups/plain/hyperparameters", "moment%75m"),
                   {"/groups/plain", "\"momentum\" twice"}));
  std::string text = good.dump();
  text.insert(1, "\"steps\": 5, ");
  EXPECT_TRUE(says(error_of(text), {"\"steps\" twice"}));
}

TEST_F(StateJsonErrors, OfScalersThatThereAreNot) {
  EXPECT_TRUE(
      says(error_of_changed([](Json& j) { j["scaler"]["kind"] = "foo"; }),
           {"/scaler/kind", "\"foo\"", "\"dynamic\""}));
}

TEST_F(StateJsonErrors, OfOtherModels) {
  const std::string text = error_of_changed([](Json& j) {
    j["update_counts"].erase("five");
    j["update_counts"]["six%2F"] = 1;
    j["groups"].erase("plain");
    j["groups"]["default"]["rule"] = "sgd";
  });
  EXPECT_TRUE(says(text, {"parameters missing in the text: \"five\"",
                          "parameters that the model does not have: \"six/\"",
                          "groups missing in the text: \"plain\"",
                          "\"default\" has the rule \"sgd\", expected "
                          "\"adamw\""}));
  EXPECT_EQ(text.find("LoadOptions"), std::string::npos);
  EXPECT_TRUE(says(error_of_changed([](Json& j) {
                     j["groups"]["plain"]["hyperparameters"].erase("nesterov");
                   }),
                   {"\"plain\" lacks the hyperparameter \"nesterov\""}));
}

TEST_F(StateJsonErrors, OfNumbersOutOfRange) {
  const auto with_rate = [&](const Json& rate) {
    return error_of_changed([&](Json& j) {
      j["groups"]["plain"]["hyperparameters"]["learning_rate"] = rate;
    });
  };
  EXPECT_TRUE(says(with_rate(-1), {"\"plain\"", "learning_rate", "-1"}));
  EXPECT_TRUE(says(with_rate("NaN"), {"learning_rate", "nan"}));
  EXPECT_TRUE(says(with_rate("Infinity"), {"learning_rate", "inf"}));
  EXPECT_TRUE(says(error_of_changed([](Json& j) { j["scaler"]["scale"] = 0; }),
                   {"scale", "float32"}));
}

TEST_F(StateJsonErrors, OfRanksThatDiffer) {
  if (last == 0) return;
  Json mine = good;
  if (optimizer.communicator()->rank() == last) mine["steps"] = 77;
  EXPECT_TRUE(says(error_of(mine.dump(2)), {"ranks disagree", "load_state_json",
                                            "\"steps\": 1", "\"steps\": 77"}));
  const bool odd = optimizer.communicator()->rank() == last;
  EXPECT_TRUE(says(error_of(odd ? "nonsense" : good.dump(2)),
                   {"parse error", "found on rank"}));
}

TEST_F(StateJsonErrors, OfMarksOnOneRank) {
  const std::string text = state_json(optimizer);
  if (optimizer.communicator()->rank() == last) optimizer.mark_ready({0});
  EXPECT_TRUE(says(error_of(text), {"load_state_json"}));
}

}  // namespace
}  // namespace kzero::test
