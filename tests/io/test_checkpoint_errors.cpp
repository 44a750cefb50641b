// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Failures of saving and loading: the same error on every rank, and what was
// there before stays.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <kzero/checkpoint.hpp>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_model.hpp"
#include "io/edited_file.hpp"
#include "io/file_size_limit.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/read_only_folder.hpp"
#include "io/scratch_folder.hpp"
#include "io/sub_communicator.hpp"

namespace kzero::test {
namespace {

class CheckpointErrors : public testing::Test {
 protected:
  CheckpointErrors() {
    write_start(optimizer, 1);
    train(optimizer, 2);
  }

  /// The message, when it is the same on every rank.
  std::string common(const std::string& message) {
    std::string roots = message;
    Snapshot all = {{"message", roots}};
    broadcast(all, MPI_COMM_WORLD);
    EXPECT_EQ(message, all["message"]);
    return message;
  }

  std::string save_error(const std::filesystem::path& path,
                         const UserData& user = {}) {
    return common(
        checkpoint_error([&] { save_checkpoint(optimizer, path, {user}); }));
  }

  /// Of loading into optimizer, which must stay as it was.
  std::string load_error(const std::filesystem::path& path) {
    const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
    const std::string message =
        common(checkpoint_error([&] { load_checkpoint(optimizer, path); }));
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
    return message;
  }

  void expect_training_goes_on() {
    auto undisturbed = make_varied(world(), 600);
    write_start(undisturbed, 1);
    train(undisturbed, 3);
    train(optimizer, 1);
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD),
                      snapshot(undisturbed, MPI_COMM_WORLD)));
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  ShardedOptimizer optimizer = make_varied(world(), 600);
  const bool root = optimizer.communicator()->rank() == 0;
};

TEST_F(CheckpointErrors, OfPathsThatCannotBeWritten) {
  EXPECT_TRUE(says(save_error(folder / "none" / "c.h5"),
                   {"none/c.h5", "No such file or directory"}));
  EXPECT_TRUE(says(save_error(folder.path()), {"Is a directory"}));
  EXPECT_TRUE(says(save_error(""), {"names no file"}));
  EXPECT_TRUE(folder.names().empty());
  expect_training_goes_on();
}

TEST_F(CheckpointErrors, OfAReadOnlyFolderLeaveTheOldFile) {
  save_checkpoint(optimizer, folder / "c.h5");
  const std::string old = file_bytes(folder / "c.h5");
  MPI_Barrier(MPI_COMM_WORLD);
  {
    std::unique_ptr<ReadOnlyFolder> locked;
    if (root) locked = std::make_unique<ReadOnlyFolder>(folder.path());
    int holds = !root || locked->holds() ? 1 : 0;
    MPI_Bcast(&holds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (holds == 0)
      GTEST_SKIP() << "this user may write into every folder, and cannot act "
                      "as another one";
    for (const char* name : {"c.h5", "d.h5"})
      EXPECT_TRUE(says(save_error(folder / name),
                       {name, "Permission denied",
                        "no file can be created in the folder", "untouched"}));
    EXPECT_TRUE(says(common(checkpoint_error([&] {
                       save_checkpoint_async(optimizer, folder / "d.h5");
                     })),
                     {"d.h5", "Permission denied"}));
    load_checkpoint(optimizer, folder / "c.h5");
  }
  EXPECT_EQ(file_bytes(folder / "c.h5"), old);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
  expect_training_goes_on();
  save_checkpoint(optimizer, folder / "c.h5");
}

TEST_F(CheckpointErrors, OfUserDataThatCannotBeWritten) {
  EXPECT_TRUE(
      says(save_error(folder / "c.h5",
                      root ? UserData{{"bad", UserArray<float>{{3}, {}}}}
                           : UserData{}),
           {"\"bad\"", "(3)"}));
  EXPECT_TRUE(folder.names().empty());
}

// Case 24, at every stage of the file.
TEST_F(CheckpointErrors, OfAFullDiskLeaveTheOldFile) {
  save_checkpoint(optimizer, folder / "c.h5");
  const std::string old = file_bytes(folder / "c.h5");
  for (std::size_t limit = 0; limit < old.size(); limit += 4999) {
    std::unique_ptr<FileSizeLimit> full;
    if (root) full = std::make_unique<FileSizeLimit>(limit);
    EXPECT_TRUE(says(save_error(folder / "c.h5"),
                     {"c.h5", "File too large", "untouched"}));
  }
  EXPECT_EQ(file_bytes(folder / "c.h5"), old);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
  expect_training_goes_on();
  save_checkpoint(optimizer, folder / "c.h5");
  load_checkpoint(optimizer, folder / "c.h5");
}

// On another rank than the one that has made the file.
TEST_F(CheckpointErrors, OfAFullDiskOfTheLastRank) {
  const int ranks = optimizer.communicator()->size();
  if (ranks == 1) return;
  save_checkpoint(optimizer, folder / "c.h5");
  const std::string old = file_bytes(folder / "c.h5");
  {
    std::unique_ptr<FileSizeLimit> full;
    if (optimizer.communicator()->rank() == ranks - 1)
      full = std::make_unique<FileSizeLimit>(4096);
    EXPECT_TRUE(says(save_error(folder / "c.h5"),
                     {"c.h5", "File too large", "writing stopped at byte",
                      "untouched", "found on rank"}));
  }
  EXPECT_EQ(file_bytes(folder / "c.h5"), old);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
  expect_training_goes_on();
}

TEST_F(CheckpointErrors, OfFilesThatAreNone) {
  EXPECT_TRUE(says(load_error(folder / "none.h5"),
                   {"none.h5", "No such file or directory"}));
  if (root) write_bytes(folder / "text", "hello");
  EXPECT_TRUE(
      says(load_error(folder / "text"), {"text", "no kzero checkpoint"}));
  // Nobody writes to it.
  if (root) {
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  }
  EXPECT_TRUE(
      says(load_error(folder / "pipe"), {"pipe", "no kzero checkpoint"}));
  save_checkpoint(optimizer, folder / "c.h5");
  if (root)
    std::filesystem::resize_file(
        folder / "c.h5", std::filesystem::file_size(folder / "c.h5") / 2);
  EXPECT_TRUE(says(load_error(folder / "c.h5"), {"c.h5", "truncated"}));
  expect_training_goes_on();
}

TEST_F(CheckpointErrors, OfTruncatedFiles) {
  save_checkpoint(optimizer, folder / "c.h5");
  const std::string whole = file_bytes(folder / "c.h5");
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t size = 0; size < whole.size(); size = size * 3 + 1) {
    if (root) write_bytes(folder / "c.h5", whole.substr(0, size));
    EXPECT_TRUE(says(load_error(folder / "c.h5"), {"c.h5"})) << size;
  }
  if (root) write_bytes(folder / "c.h5", whole.substr(0, whole.size() - 1));
  EXPECT_TRUE(says(load_error(folder / "c.h5"), {"c.h5", "truncated"}));
}

// As a killed writer leaves it, under the name of a whole one.
TEST_F(CheckpointErrors, OfIncompleteFiles) {
  if (root) {
    const detail::FileLayout layout = detail::layout_of(optimizer, {});
    detail::CheckpointWriter writer(folder / "d.h5", layout);
    std::filesystem::copy(writer.file().temporary(), folder / "c.h5");
  }
  EXPECT_TRUE(says(load_error(folder / "c.h5"), {"c.h5", "incomplete"}));
  expect_training_goes_on();
}

TEST_F(CheckpointErrors, OfFilesOfANewerMajorVersion) {
  save_checkpoint(optimizer, folder / "c.h5");
  if (root)
    edit_header(folder / "c.h5", [](Json& json) {
      json["format_version"] = {3, 0};
    });
  EXPECT_TRUE(says(load_error(folder / "c.h5"),
                   {"c.h5", "format version 3.0", "newer kzero"}));
  expect_training_goes_on();
}

TEST_F(CheckpointErrors, OfOtherModels) {
  ParameterSet model;
  model.add("layer 1/weight", {7, 31}, typed(DType::bfloat16));
  model.add("five", {5}, typed(DType::float64));
  model.add("own", {2});
  ShardedOptimizer other(world(), model, {});
  save_checkpoint(other, folder / "c.h5");
  EXPECT_TRUE(says(
      load_error(folder / "c.h5"),
      {"c.h5", "\"layer 1/weight\" has the shape (7, 31), expected (31, 7)",
       "\"five\" is float64, expected float32", "does not have: \"own\"",
       "\"layer 1/bias\"", "and 6 more", "groups missing"}));
  expect_training_goes_on();
}

TEST_F(CheckpointErrors, OfOtherRules) {
  const auto save_with = [&](const Rule& rule) {
    OptimizerOptions options = varied_options(600);
    options.groups["momentum"] = rule;
    ShardedOptimizer other(world(), varied_model(), options);
    save_checkpoint(other, folder / "c.h5");
    return load_error(folder / "c.h5");
  };
  EXPECT_TRUE(says(save_with(AdamW{}),
                   {"\"momentum\" has the rule \"adamw\", expected \"sgd\""}));
  EXPECT_TRUE(says(save_with(Sgd{}), {"\"a scalar\"", "\"momentum_buffer\""}));
}

TEST_F(CheckpointErrors, OfHyperparametersThatAreNotValid) {
  save_checkpoint(optimizer, folder / "c.h5");
  if (root) {
    edit_manifest(folder / "c.h5", [](Json& json) {
      json["groups"]["plain"]["hyperparameters"]["learning_rate"] = -1.0;
    });
  }
  EXPECT_TRUE(
      says(load_error(folder / "c.h5"), {"\"plain\"", "learning_rate", "-1"}));
}

TEST_F(CheckpointErrors, OfCountsThatOverflowSoon) {
  constexpr std::int64_t largest = std::int64_t{1} << 62;
  const auto load_with = [&](const std::function<void(Json&)>& edit) {
    save_checkpoint(optimizer, folder / "c.h5");
    if (root) edit_manifest(folder / "c.h5", edit);
    return folder / "c.h5";
  };
  const auto with_update_count = [&](std::int64_t count) {
    return load_with([count](Json& json) {
      for (Json& parameter : json["parameters"])
        if (parameter["name"] == "five") parameter["update_count"] = count;
    });
  };
  for (const std::int64_t count : {std::int64_t{-1}, largest + 1,
                                   std::numeric_limits<std::int64_t>::max()}) {
    const std::string number = std::to_string(count);
    EXPECT_TRUE(says(load_error(with_update_count(count)),
                     {"\"five\"", number.c_str(), "expected"}));
    for (const auto& [name, words] : {std::pair{"step", "count of steps"},
                                      {"skipped_total", "skipped_total"},
                                      {"skipped_in_a_row", "skipped_in_a_row"}})
      EXPECT_TRUE(says(load_error(load_with(
                           [&, key = name](Json& json) { json[key] = count; })),
                       {words, number.c_str()}));
  }
  load_checkpoint(optimizer, with_update_count(largest));
  train(optimizer, 1);
  EXPECT_EQ(optimizer.update_count(optimizer.parameters().find("five").value()),
            largest + 1);
}

// A file whose arrays cannot all be read: the checksum of one is wrong.
TEST_F(CheckpointErrors, InTheMiddleOfTheArraysSaySo) {
  save_checkpoint(optimizer, folder / "c.h5");
  if (root) {
    std::string bytes = file_bytes(folder / "c.h5");
    const detail::CheckpointReader reader(folder / "c.h5");
    const auto& parameters = reader.layout().parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (std::size_t k = 0; k < parameters[i].arrays.size(); ++k)
        if (parameters[i].name == std::string(300, 'n') &&
            parameters[i].arrays[k].name == "exp_avg_sq")
          bytes[std::size_t(reader.stored().arrays[i][k].place) + 5] ^= 16;
    write_bytes(folder / "c.h5", bytes);
  }
  const std::string message = common(
      checkpoint_error([&] { load_checkpoint(optimizer, folder / "c.h5"); }));
  EXPECT_TRUE(
      says(message, {"c.h5", "\"exp_avg_sq\"", "nnn\"", "partly overwritten"}));
  train(optimizer, 1);
}

TEST_F(CheckpointErrors, OfMarksOnOneRank) {
  const int last = optimizer.communicator()->size() - 1;
  if (optimizer.communicator()->rank() == last) optimizer.mark_ready({0});
  EXPECT_TRUE(says(common(message_of<InvalidArgument>(
                       [&] { save_checkpoint(optimizer, folder / "c.h5"); })),
                   {"save_checkpoint"}));
  EXPECT_TRUE(says(common(message_of<InvalidArgument>(
                       [&] { load_checkpoint(optimizer, folder / "c.h5"); })),
                   {"load_checkpoint"}));
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace kzero::test
