// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <string>

#include "io/checkpoint_error.hpp"
#include "io/file_size_limit.hpp"
#include "io/new_file.hpp"
#include "io/scratch_folder.hpp"

using kzero::detail::NewFile;
using kzero::detail::PartOfNewFile;
using kzero::test::checkpoint_error;
using kzero::test::file_bytes;
using kzero::test::FileSizeLimit;
using kzero::test::says;
using kzero::test::ScratchFolder;
using kzero::test::write_bytes;

namespace {

constexpr auto no = kzero::detail::Durable::no;
constexpr auto yes = kzero::detail::Durable::yes;

TEST(NewFile, TakesItsNameAtTheEnd) {
  const ScratchFolder folder;
  write_bytes(folder / "file", "old");
  {
    NewFile file(folder / "file");
    EXPECT_EQ(file.temporary().parent_path(), folder.path());
    const std::string name = file.temporary().filename().string();
    EXPECT_EQ(name.substr(0, 5), "file.");
    EXPECT_EQ(name.substr(name.size() - 4), ".tmp");
    const std::string mark = file.mark();
    EXPECT_EQ(file_bytes(file.temporary()), mark);
    file.write(0, "new!", 4);
    EXPECT_EQ(file_bytes(folder / "file"), "old");
    file.finish(yes);
    EXPECT_EQ(file_bytes(folder / "file"), "old");
    file.take_name(yes);
    EXPECT_EQ(file_bytes(folder / "file"), "new!" + mark.substr(4));
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
}

TEST(NewFile, LeavesNothingWhenGivenUp) {
  const ScratchFolder folder;
  write_bytes(folder / "file", "old");
  {
    NewFile file(folder / "file");
    file.write(0, "new!", 4);
    NewFile other(folder / "file");
    EXPECT_NE(file.temporary(), other.temporary());
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
  EXPECT_EQ(file_bytes(folder / "file"), "old");
}

TEST(NewFile, TakesALongName) {
  const ScratchFolder folder;
  const std::string name(255, 'n');
  NewFile file(folder / name);
  file.finish(yes);
  file.take_name(yes);
  EXPECT_EQ(folder.names(), std::vector<std::string>{name});
  EXPECT_TRUE(says(checkpoint_error([&] { NewFile(folder / (name + "n")); }),
                   {"too long"}));
}

TEST(NewFile, SaysWhyItCannotBeCreated) {
  const ScratchFolder folder;
  EXPECT_TRUE(says(checkpoint_error([&] { NewFile(folder / "none" / "file"); }),
                   {"none/file", "No such file or directory", "must exist"}));
  EXPECT_TRUE(says(checkpoint_error([&] { NewFile file(folder.path()); }),
                   {"Is a directory"}));
  EXPECT_TRUE(
      says(checkpoint_error([&] { NewFile(folder / ""); }), {"names no file"}));
  EXPECT_TRUE(says(checkpoint_error([&] { NewFile(""); }), {"names no file"}));
  write_bytes(folder / "plain", "");
  EXPECT_TRUE(
      says(checkpoint_error([&] { NewFile(folder / "plain" / "file"); }),
           {"Not a directory"}));
}

TEST(NewFile, StaysWhenTheNameIsTaken) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  file.finish(yes);
  std::filesystem::create_directories(folder / "file" / "x");
  EXPECT_TRUE(says(checkpoint_error([&] { file.take_name(yes); }),
                   {"could not take the name", "directory"}));
}

TEST(NewFile, SaysWhereWritingStopped) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  file.reserve(100);
  const FileSizeLimit limit(12);
  file.write(0, "0123456789", 10);
  EXPECT_TRUE(says(checkpoint_error([&] { file.write(10, "abcdef", 6); }),
                   {"File too large", "at byte 10 of 100", "untouched"}));
}

TEST(NewFile, ReservesRoom) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  file.reserve(1 << 20);
  EXPECT_EQ(std::filesystem::file_size(file.temporary()), 1u << 20);
  const std::string text =
      checkpoint_error([&] { file.reserve(std::int64_t{1} << 60); });
  EXPECT_TRUE(says(text, {"1152921504606846976 bytes"}));
}

TEST(NewFile, IsWrittenInPartsByOthers) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  file.reserve(100);
  PartOfNewFile part(file.path(), file.temporary(), file.mark());
  ASSERT_TRUE(part.is_open());
  part.write(50, "middle", 6);
  part.finish(no);
  file.finish(no);
  file.take_name(no);
  EXPECT_EQ(file_bytes(folder / "file").substr(50, 6), "middle");
}

TEST(NewFile, IsToldFromOthers) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  NewFile other(folder / "file");
  EXPECT_FALSE(
      PartOfNewFile(file.path(), other.temporary(), file.mark()).is_open());
  EXPECT_FALSE(
      PartOfNewFile(file.path(), folder / "none", file.mark()).is_open());
}

}  // namespace
