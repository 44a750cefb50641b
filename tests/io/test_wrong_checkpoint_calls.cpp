// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Wrong calls of saving and loading: each is refused on every rank, by name and
// value, and neither files nor optimizer change.
#include <gtest/gtest.h>

#include <filesystem>
#include <kzero/kzero.hpp>
#include <nlohmann/json.hpp>

#include "core/message.hpp"
#include "io/scratch_folder.hpp"
#include "support/optimizer_support.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

using detail::concat;

ParameterSet model(std::int64_t size = 6) {
  ParameterSet set;
  set.add("w", {size});
  set.add("half", {5}, typed(DType::bfloat16));
  return set;
}

OptimizerOptions plain(const Rule& rule = Sgd{.learning_rate = 1.0}) {
  OptimizerOptions options;
  options.rule = rule;
  return options;
}

class WrongCheckpointCalls : public testing::Test {
 protected:
  WrongCall save(const char* name, const std::filesystem::path& path,
                 std::vector<std::string> says, const UserData& user = {}) {
    return {name,
            [=, this] { save_checkpoint(optimizer, path, {.user = user}); },
            std::move(says), Found::collective, Throws::checkpoint_error};
  }

  WrongCall save_user(const char* name, const UserData& user,
                      std::vector<std::string> says) {
    return save(name, folder / "new.h5", std::move(says), user);
  }

  WrongCall load(const char* name, const std::filesystem::path& path,
                 std::vector<std::string> says) {
    return {name, [=, this] { load_checkpoint(optimizer, path); },
            std::move(says), Found::collective, Throws::checkpoint_error};
  }

  /// A checkpoint of another optimizer.
  std::filesystem::path saved(const char* name, const ParameterSet& set,
                              const OptimizerOptions& options) {
    ShardedOptimizer other(communicator, set, options);
    save_checkpoint(other, folder / name);
    return folder / name;
  }

  void expect_unharmed() {
    EXPECT_FALSE(std::filesystem::exists(folder / "new.h5"));
    fill_gradient(optimizer, w, [](auto) { return 1.0; });
    const std::vector<double> before = read_parameter(optimizer, w);
    EXPECT_TRUE(optimizer.step().updated());
    const std::vector<double> after = read_parameter(optimizer, w);
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(after[i], before[i] - 1.0);
  }

  void expect_all_refused(const WrongCalls& rows) {
    expect_refused(rows, [this] { expect_unharmed(); });
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  std::shared_ptr<Communicator> communicator = world();
  const bool root = communicator->rank() == 0;
  const bool is_last = communicator->rank() == communicator->size() - 1;
  ShardedOptimizer optimizer{communicator, model(), plain()};
  const ParameterId w{0};
};

TEST_F(WrongCheckpointCalls, OfSaving) {
  if (root) write_bytes(folder / "text", "hello");
  expect_all_refused({
      save("no path", "", {"\"\"", "no file"}),
      save("a folder that is not there", folder / "none" / "new.h5",
           {"none/new.h5", "No such file or directory"}),
      save("a folder", folder.path(),
           {folder.path().string(), "Is a directory"}),
      save("a file as a folder", folder / "text" / "new.h5",
           {"text/new.h5", "Not a directory"}),
      save("a name that is too long", folder / std::string(300, 'x'),
           {std::string(300, 'x'), "name too long"}),
  });
  if (root) {
    EXPECT_EQ(file_bytes(folder / "text"), "hello");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"text"});
}

TEST_F(WrongCheckpointCalls, OfUserData) {
  const std::vector<std::int64_t> many(40, 1);
  const std::int64_t big = std::int64_t{1} << 62;
  using Floats = UserArray<float>;
  expect_all_refused({
      save_user("no name", {{"", std::int64_t{1}}}, {"without a name"}),
      save_user("values that are missing", {{"bad", Floats{{3}, {}}}},
                {"\"bad\"", "(3)", "0 values"}),
      save_user("values that are too many",
                {{"bad", UserArray<double>{{2, 2}, {1, 2, 3, 4, 5}}}},
                {"\"bad\"", "(2, 2)", "5 values"}),
      save_user("a negative extent", {{"bad", Floats{{-1}, {1.0f}}}},
                {"\"bad\"", "(-1)", "1 value"}),
      save_user("a negative extent beside 0", {{"bad", Floats{{0, -2}, {}}}},
                {"\"bad\"", "(0, -2)"}),
      save_user("extents that overflow", {{"bad", Floats{{big, 4}, {}}}},
                {"\"bad\"", "(4611686018427387904, 4)"}),
      save_user("an array without extents", {{"bad", Floats{{}, {1.0f}}}},
                {"\"bad\"", "without extents"}),
      save_user("too many dimensions", {{"bad", Floats{many, {1.0f}}}},
                {"\"bad\"", "40", "32"}),
      save_user("a list with a NUL byte",
                {{"bad", std::vector<std::string>{std::string("a\0b", 3)}}},
                {"\"bad\"", "a\\x00b", "NUL"}),
  });
}

TEST_F(WrongCheckpointCalls, OfLoadingWhatIsNoCheckpoint) {
  save_checkpoint(optimizer, folder / "good.h5");
  if (root) {
    write_bytes(folder / "text", "hello");
    write_bytes(folder / "empty", "");
    const std::string good = file_bytes(folder / "good.h5");
    write_bytes(folder / "half.h5", good.substr(0, good.size() / 2));
  }
  expect_all_refused({
      load("no path", "", {"\"\""}),
      load("a file that is not there", folder / "none.h5",
           {"none.h5", "No such file or directory"}),
      load("a folder", folder.path(),
           {folder.path().string(), "Is a directory"}),
      load("a text", folder / "text", {"text", "no kzero checkpoint"}),
      load("an empty file", folder / "empty", {"empty", "no kzero checkpoint"}),
      load("half a file", folder / "half.h5", {"half.h5", "truncated"}),
  });
}

TEST_F(WrongCheckpointCalls, OfLoadingOtherModels) {
  ParameterSet more = model();
  more.add("more", {1});
  ParameterSet fewer;
  fewer.add("w", {6});
  ParameterSet typed_otherwise;
  typed_otherwise.add("w", {6}, typed(DType::float64));
  typed_otherwise.add("half", {5}, typed(DType::bfloat16));
  expect_all_refused({
      load("another shape", saved("shape.h5", model(7), plain()),
           {"shape.h5", "\"w\"", "(7)", "(6)"}),
      load("another type", saved("type.h5", typed_otherwise, plain()),
           {"type.h5", "\"w\"", "float64", "float32"}),
      load("a parameter more", saved("more.h5", more, plain()),
           {"more.h5", "\"more\""}),
      load("a parameter less", saved("fewer.h5", fewer, plain()),
           {"fewer.h5", "\"half\""}),
      load("another rule", saved("rule.h5", model(), plain(Lion{})),
           {"rule.h5", "\"default\"", "\"lion\"", "\"sgd\""}),
      load("another state",
           saved("state.h5", model(), plain(Sgd{.momentum = 0.9})),
           {"state.h5", "\"w\"", "\"momentum_buffer\""}),
  });
}

TEST_F(WrongCheckpointCalls, OfStateThatIsNoState) {
  using Json = nlohmann::json;
  const Json good = Json::parse(state_json(optimizer));
  const auto load_text = [this](const char* name, std::string text,
                                std::vector<std::string> says) {
    says.push_back("load_state_json");
    return WrongCall{name, [=, this] { load_state_json(optimizer, text); },
                     std::move(says), Found::collective};
  };
  // The good state, but for one place.
  const auto with = [&](const char* name, const char* place, const Json& value,
                        std::vector<std::string> says) {
    Json bad = good;
    bad[Json::json_pointer(place)] = value;
    return load_text(name, bad.dump(), std::move(says));
  };
  const auto without = [&](const char* name, const char* key) {
    Json bad = good;
    bad.erase(key);
    return load_text(name, bad.dump(), {concat("\"", key, "\"")});
  };
  WrongCalls rows = {
      load_text("no text", "", {"parse error", "column 1"}),
      load_text("half a text", good.dump().substr(0, 50), {"parse error"}),
      load_text("a list", "[1]", {"an array", "an object"}),
      load_text("null", "null", {"null", "an object"}),
      with("another format", "/format", "torch", {"\"torch\""}),
      with("a newer format", "/format_version", {7, 3}, {"7.3", "newer"}),
      with("no version", "/format_version", "one", {"\"one\"", "a list"}),
      with("steps in words", "/steps", "many", {"/steps", "\"many\""}),
      with("half a step", "/steps", 1.5, {"/steps", "1.5", "integer"}),
      with("steps past all bounds", "/steps", 18446744073709551615u,
           {"/steps", "18446744073709551615"}),
      with("negative steps", "/steps", -3, {"steps", "-3"}),
      with("a negative update count", "/update_counts/w", -1, {"\"w\"", "-1"}),
      with("a parameter that is not there", "/update_counts/other", 1,
           {"\"other\""}),
      with("another rule", "/groups/default/rule", "lion",
           {"\"default\"", "\"lion\"", "\"sgd\""}),
      with("a negative learning rate",
           "/groups/default/hyperparameters/learning_rate", -1,
           {"\"default\"", "learning_rate", "-1"}),
      with("a learning rate that is NaN",
           "/groups/default/hyperparameters/learning_rate", "NaN",
           {"\"default\"", "learning_rate", "nan"}),
      with("an unknown hyperparameter", "/groups/default/hyperparameters/beta1",
           0.9, {"\"default\"", "\"beta1\""}),
      without("no steps", "steps"),
      without("no groups", "groups"),
      without("no update counts", "update_counts"),
  };
  if (communicator->size() > 1) {
    Json other = good;
    other["steps"] = 77;
    rows.push_back({"another state on the last rank",
                    [=, this] {
                      load_state_json(optimizer,
                                      (is_last ? other : good).dump(2));
                    },
                    {"load_state_json", "ranks disagree", "\"steps\": 77"},
                    Found::collective});
  }
  rows.push_back({"a good state, after a mark on the last rank",
                  [=, this] {
                    if (is_last) optimizer.mark_ready(w);
                    load_state_json(optimizer, good.dump());
                  },
                  {"load_state_json", "1 of 2"},
                  Found::collective});
  expect_all_refused(rows);
}

TEST_F(WrongCheckpointCalls, AfterAMark) {
  save_checkpoint(optimizer, folder / "good.h5");
  expect_all_refused({
      {"saving after a mark on the last rank",
       [&] {
         if (is_last) optimizer.mark_ready(w);
         save_checkpoint(optimizer, folder / "new.h5");
       },
       {"save_checkpoint", "1 of 2"},
       Found::collective},
      {"loading after a mark on the last rank",
       [&] {
         if (is_last) optimizer.mark_ready(w);
         load_checkpoint(optimizer, folder / "good.h5");
       },
       {"load_checkpoint", "1 of 2"},
       Found::collective},
  });
}

TEST_F(WrongCheckpointCalls, AfterAMove) {
  const ShardedOptimizer moved = std::move(optimizer);
  expect_refused({
      {"saving",
       [&] { save_checkpoint(optimizer, folder / "new.h5"); },
       {"moved from"}},
      {"loading",
       [&] { load_checkpoint(optimizer, folder / "good.h5"); },
       {"moved from"}},
      {"telling the state",
       [&] { static_cast<void>(state_json(optimizer)); },
       {"moved from"}},
      {"loading the state",
       [&] { load_state_json(optimizer, "{}"); },
       {"moved from"}},
  });
}

}  // namespace
}  // namespace kzero::test
