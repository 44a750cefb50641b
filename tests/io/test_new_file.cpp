// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <string>

#include "io/checkpoint_error.hpp"
#include "io/file_size_limit.hpp"
#include "io/new_file.hpp"
#include "io/scratch_folder.hpp"

using kzero::detail::NewFile;
using kzero::test::checkpoint_error;
using kzero::test::file_bytes;
using kzero::test::FileSizeLimit;
using kzero::test::says;
using kzero::test::ScratchFolder;
using kzero::test::write_bytes;

namespace {

constexpr auto metadata = NewFile::Content::metadata;
constexpr auto data = NewFile::Content::data;

TEST(NewFile, TakesItsNameAtTheEnd) {
  const ScratchFolder folder;
  write_bytes(folder / "file", "old");
  {
    NewFile file(folder / "file");
    EXPECT_EQ(file.temporary().parent_path(), folder.path());
    const std::string name = file.temporary().filename().string();
    EXPECT_EQ(name.substr(0, 5), "file.");
    EXPECT_EQ(name.substr(name.size() - 4), ".tmp");
    file.write(0, "new!", 4, data);
    EXPECT_EQ(file_bytes(folder / "file"), "old");
    file.sync();
    EXPECT_EQ(file_bytes(folder / "file"), "old");
    file.take_name();
    EXPECT_EQ(file_bytes(folder / "file"), "new!");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
}

TEST(NewFile, LeavesNothingWhenGivenUp) {
  const ScratchFolder folder;
  write_bytes(folder / "file", "old");
  {
    NewFile file(folder / "file");
    file.write(0, "new!", 4, data);
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
  file.sync();
  file.take_name();
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
  file.sync();
  std::filesystem::create_directories(folder / "file" / "x");
  EXPECT_TRUE(says(checkpoint_error([&] { file.take_name(); }),
                   {"could not take the name", "directory"}));
}

TEST(NewFile, KeepsTheFirstFailure) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  file.write(0, "0123456789", 10, data);
  {
    const FileSizeLimit limit(12);
    file.write(10, "abcdef", 6, data);
  }
  file.write(16, "metadata", 8, metadata);
  const std::string text = checkpoint_error([&] { file.check(); });
  EXPECT_TRUE(says(text, {"File too large", "at byte 12", "untouched"}));
  EXPECT_EQ(checkpoint_error([&] { file.sync(); }), text);
}

TEST(NewFile, RemembersMetadataThatCouldNotBeWritten) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  file.write(0, "0123456789", 10, metadata);
  {
    const FileSizeLimit limit(10);
    file.write(10, "lost", 4, data);
  }
  file.write(4, "ABCD", 4, metadata);
  file.write(6, "xyz", 3, metadata);
  file.write(12, "tail", 4, metadata);
  std::string read(18, '?');
  ASSERT_TRUE(file.read(0, read.data(), read.size()));
  EXPECT_EQ(read, std::string("0123ABxyz9\0\0tail\0\0", 18));
  std::string part(4, '?');
  ASSERT_TRUE(file.read(7, part.data(), part.size()));
  EXPECT_EQ(part, std::string("yz9\0", 4));
  EXPECT_EQ(file_bytes(file.temporary()), "0123456789");
}

TEST(NewFile, ReservesRoom) {
  const ScratchFolder folder;
  NewFile file(folder / "file");
  file.write(0, "x", 1, data);
  file.reserve(1 << 20);
  EXPECT_EQ(std::filesystem::file_size(file.temporary()), 1u);
  const std::string text =
      checkpoint_error([&] { file.reserve(std::int64_t{1} << 60); });
  EXPECT_TRUE(says(text, {"1152921504606846976 bytes", "are free"}));
}

}  // namespace
