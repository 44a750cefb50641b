// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Several checkpoints in one folder: the newest good one is found, and old ones
// go, but never the last good one.
#include <gtest/gtest.h>

#include <chrono>
#include <kzero/checkpoint.hpp>
#include <string>
#include <thread>
#include <vector>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_model.hpp"
#include "io/logged_words.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

class Latest : public testing::Test {
 protected:
  Latest() { write_start(optimizer, 1); }

  /// Trains a step and saves.
  Snapshot save(const std::string& name, int keep = 0) {
    train(optimizer, 1);
    save_checkpoint(optimizer, folder / name, {.keep = keep});
    return snapshot(optimizer, MPI_COMM_WORLD);
  }

  Snapshot loaded(CheckpointContent* content = nullptr,
                  const LoadOptions& options = {}) {
    ShardedOptimizer other = make_varied(world(), 900);
    const auto found = load_latest(other, folder.path(), options);
    EXPECT_TRUE(found.has_value());
    if (found && content != nullptr) *content = *found;
    return snapshot(other, MPI_COMM_WORLD);
  }

  /// On rank 0.
  template <class F>
  void change(const std::string& name, F&& f) {
    if (root) {
      std::string bytes = file_bytes(folder / name);
      f(bytes);
      write_bytes(folder / name, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }

  /// Flips a bit of an array.
  void damage_array(const std::string& name) {
    change(name, [&](std::string& bytes) {
      const detail::CheckpointReader reader(folder / name);
      for (const detail::Stretch& each :
           detail::array_stretches(reader.stored()))
        if (each.bytes > 1000) bytes[std::size_t(each.place) + 500] ^= 2;
    });
  }

  std::vector<std::string> names() {
    MPI_Barrier(MPI_COMM_WORLD);
    return folder.names();
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  ShardedOptimizer optimizer = make_varied(world(), 600);
  const bool root = optimizer.communicator()->rank() == 0;
};

TEST_F(Latest, IsNamedInAFile) {
  save("a-1.h5");
  EXPECT_EQ(file_bytes(folder / "latest"), "a-1.h5\n");
  const Snapshot saved = save("a-2.h5");
  EXPECT_EQ(file_bytes(folder / "latest"), "a-2.h5\n");
  CheckpointContent content;
  EXPECT_TRUE(equal(loaded(&content), saved));
  EXPECT_EQ(content.path, folder / "a-2.h5");
  EXPECT_EQ(content.step, 2);
  EXPECT_TRUE(content.passed_over.empty());
}

TEST_F(Latest, IsNothingInAnEmptyFolder) {
  EXPECT_FALSE(load_latest(optimizer, folder.path()).has_value());
  change("notes", [](std::string& bytes) { bytes = "no checkpoint"; });
  EXPECT_FALSE(load_latest(optimizer, folder.path()).has_value());
  EXPECT_TRUE(
      says(checkpoint_error([&] { load_latest(optimizer, folder / "none"); }),
           {"none", "No such file or directory"}));
}

// Case 23: whatever happened to the newest, and to "latest".
TEST_F(Latest, WalksBackToTheNewestGoodOne) {
  const Snapshot first = save("a-1.h5");
  const Snapshot second = save("a-2.h5");
  save("a-3.h5");
  save("a-4.h5");
  save("a-5.h5");
  change("a-5.h5", [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  change("a-4.h5", [](std::string& bytes) { bytes[5000] ^= 1; });
  damage_array("a-3.h5");
  change("a-6.h5.0123456789abcdef.tmp", [](std::string& bytes) {
    bytes = "kzero unfinished 0123456789abcdef";
  });
  const LoggedWords words;
  for (const Engine engine : {Engine::direct, Engine::gather}) {
    CheckpointContent content;
    EXPECT_TRUE(equal(loaded(&content, {.engine = engine}), second));
    EXPECT_EQ(content.path, folder / "a-2.h5");
    ASSERT_EQ(content.passed_over.size(), 4u);
    std::string all;
    for (const std::string& each : content.passed_over) all += each + "\n";
    EXPECT_TRUE(says(all, {"a-5.h5", "truncated", "a-4.h5", "a-3.h5",
                           "is damaged", ".tmp", "incomplete"}));
  }
  EXPECT_EQ(words.warnings().size(), root ? 8u : 0u);
  change("latest", [](std::string& bytes) { bytes = "a-1.h5\n"; });
  EXPECT_TRUE(equal(loaded(), first));
  for (const char* other : {"none.h5\n", "", "../a-1.h5", "/etc/passwd\n"}) {
    change("latest", [&](std::string& bytes) { bytes = other; });
    EXPECT_TRUE(equal(loaded(), second)) << other;
  }
  for (const char* each : {"a-1.h5", "a-2.h5"}) damage_array(each);
  const std::string message =
      checkpoint_error([&] { load_latest(optimizer, folder.path()); });
  EXPECT_TRUE(says(message, {"no checkpoint that can be loaded", "a-1.h5",
                             "a-2.h5", "a-5.h5"}));
}

// One that is in order, but of another model, is no reason to go back.
TEST_F(Latest, OfAnotherModelIsAnError) {
  save("a-1.h5");
  ParameterSet model;
  model.add("other", {3});
  ShardedOptimizer other(world(), model, {});
  train(other, 1);
  save_checkpoint(other, folder / "a-2.h5");
  EXPECT_TRUE(
      says(checkpoint_error([&] { load_latest(optimizer, folder.path()); }),
           {"a-2.h5", "other"}));
}

TEST_F(Latest, KeepsSoMany) {
  for (int i = 8; i < 12; ++i) save(detail::concat("a-", i, ".h5"), 3);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"a-10.h5", "a-11.h5", "a-9.h5"}));
  // Of other names, and what is no good checkpoint, nothing goes.
  save("b.h5", 1);
  change("a-10.h5", [](std::string& bytes) { bytes[5000] ^= 1; });
  const Snapshot last = save("a-12.h5", 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"a-10.h5", "a-12.h5", "b.h5"}));
  EXPECT_TRUE(equal(loaded(), last));
  EXPECT_TRUE(says(message_of<InvalidArgument>([&] {
                     save_checkpoint(optimizer, folder / "c.h5", {.keep = -1});
                   }),
                   {"keep is -1"}));
}

// A job that was killed in its first save starts again from nothing.
TEST_F(Latest, IsNothingWhereOneWasLeftUnfinished) {
  change("a-1.h5.0123456789abcdef.tmp", [](std::string& bytes) {
    bytes = "kzero unfinished 0123456789abcdef";
  });
  EXPECT_FALSE(load_latest(optimizer, folder.path()).has_value());
}

// After going back to an earlier step, later ones are the old ones.
TEST_F(Latest, IsWhatWasSavedLast) {
  for (int i = 1; i <= 3; ++i) save(detail::concat("a-", i, ".h5"));
  if (root) std::filesystem::remove(folder / "latest");
  load_checkpoint(optimizer, folder / "a-1.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const Snapshot last = save("a-2.h5", 2);
  if (root) std::filesystem::remove(folder / "latest");
  MPI_Barrier(MPI_COMM_WORLD);
  CheckpointContent content;
  EXPECT_TRUE(equal(loaded(&content), last));
  EXPECT_EQ(content.step, 2);
}

// What a damaged file has overwritten, and the next one does not have, would be
// left as it is.
TEST_F(Latest, IsNoneInPartsOfTwoFiles) {
  if (optimizer.communicator()->size() == 1) return;
  ParameterSet small;
  small.add("five", {5});
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.05};
  ShardedOptimizer part(world(), small, options);
  save_checkpoint(part, folder / "a-1.h5");
  train(optimizer, 3);
  save_checkpoint(optimizer, folder / "a-2.h5");
  damage_array("a-2.h5");
  EXPECT_TRUE(says(checkpoint_error([&] {
                     load_latest(optimizer, folder.path(),
                                 {.match = Match::partial,
                                  .other_rule = OtherRule::start_anew});
                   }),
                   {"a-1.h5", "partly overwritten"}));
}

TEST_F(Latest, IsNoNameOfACheckpoint) {
  EXPECT_TRUE(says(message_of<InvalidArgument>(
                       [&] { save_checkpoint(optimizer, folder / "latest"); }),
                   {"\"latest\"", "another name"}));
  save_checkpoint(optimizer, folder / "latest", {.latest = false});
  load_checkpoint(optimizer, folder / "latest");
  EXPECT_TRUE(says(
      checkpoint_error([&] { save_checkpoint(optimizer, folder / "a-1.h5"); }),
      {"a-1.h5", "is complete", "latest", "not a file of a name"}));
  load_checkpoint(optimizer, folder / "latest");
}

TEST_F(Latest, IsLeftAloneOnRequest) {
  save_checkpoint(optimizer, folder / "a-1.h5", {.latest = false});
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_FALSE(std::filesystem::exists(folder / "latest"));
  EXPECT_TRUE(load_latest(optimizer, folder.path()).has_value());
}

TEST_F(Latest, ThatCannotBeNamedSaysThatTheFileIsThere) {
  if (root) std::filesystem::create_directories(folder / "latest" / "x");
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_TRUE(says(
      checkpoint_error([&] { save_checkpoint(optimizer, folder / "a-1.h5"); }),
      {"a-1.h5", "is complete", "latest"}));
  load_checkpoint(optimizer, folder / "a-1.h5");
}

}  // namespace
}  // namespace kzero::test
