// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <kzero/error.hpp>
#include <string>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/file_size_limit.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/python_with_h5py.hpp"
#include "io/sample_file.hpp"
#include "io/scratch_folder.hpp"

using namespace kzero;
using namespace kzero::detail;
using namespace kzero::test;

namespace {

/// The text of the layout, to be compared.
std::string text_of(const FileLayout& layout) {
  std::string text = std::to_string(layout.content.step) + " " +
                     std::to_string(layout.content.world_size) + " " +
                     layout.content.library_version + " " +
                     layout.content.created + "\n";
  for (const GroupLayout& group : layout.groups) {
    text += group.name + " " + group.rule;
    std::map<std::string, double> sorted(group.hyperparameters.begin(),
                                         group.hyperparameters.end());
    for (const auto& [name, value] : sorted)
      text += " " + name + "=" + std::to_string(value);
    text += "\n";
  }
  if (layout.scaler)
    text += layout.scaler->kind + " " +
            std::to_string(layout.scaler->state.scale) + " " +
            std::to_string(layout.scaler->state.good_steps) + " " +
            std::to_string(layout.scaler->state.hysteresis_left) + "\n";
  for (const ParameterLayout& parameter : layout.parameters) {
    text += parameter.name + " " + parameter.group + " " +
            std::to_string(parameter.update_count);
    for (const std::int64_t extent : parameter.extents)
      text += "," + std::to_string(extent);
    for (const ArrayLayout& array : parameter.arrays)
      text += " " + array.name + ":" + std::string(to_string(array.dtype));
    text += "\n";
  }
  return text;
}

std::string error_of_reading(const std::filesystem::path& path) {
  return checkpoint_error([&] {
    const CheckpointReader reader(path);
    read_contents(reader, reader.layout());
  });
}

/// Opens a file to spoil it.
Handle open_to_write(const std::filesystem::path& path) {
  return own(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose,
             "H5Fopen");
}

TEST(CheckpointFile, ComesBackBitForBit) {
  const ScratchFolder folder;
  const FileLayout layout = sample_layout();
  for (const std::int64_t call_bytes : {largest_call, std::int64_t{4000}}) {
    write_sample(folder / "file.h5", layout, call_bytes);
    const CheckpointReader reader(folder / "file.h5", call_bytes);
    EXPECT_EQ(text_of(reader.layout()), text_of(layout));
    EXPECT_EQ(reader.layout().content.user, layout.content.user);
    EXPECT_EQ(read_contents(reader, layout), sample_contents(layout));
  }
}

TEST(CheckpointFile, IsTheSameForAnySizeOfCalls) {
  const ScratchFolder folder;
  write_sample(folder / "one.h5");
  write_sample(folder / "many.h5", sample_layout(), 100);
  EXPECT_EQ(file_bytes(folder / "one.h5"), file_bytes(folder / "many.h5"));
}

TEST(CheckpointFile, HoldsManyParametersInOrder) {
  const ScratchFolder folder;
  FileLayout layout = sample_layout();
  for (int i = 0; i < 3000; ++i)
    layout.parameters.push_back({"p" + std::to_string(i * 7919 % 3000),
                                 "default",
                                 i,
                                 {2},
                                 {{"value", DType::float32}}});
  write_sample(folder / "file.h5", layout);
  const CheckpointReader reader(folder / "file.h5");
  EXPECT_EQ(text_of(reader.layout()), text_of(layout));
  EXPECT_EQ(read_contents(reader, layout), sample_contents(layout));
}

TEST(CheckpointFile, HoldsNoParametersToo) {
  const ScratchFolder folder;
  FileLayout layout;
  write_sample(folder / "file.h5", layout);
  EXPECT_EQ(text_of(CheckpointReader(folder / "file.h5").layout()),
            text_of(layout));
}

TEST(CheckpointFile, KeepsAnyBytesOfNames) {
  const ScratchFolder folder;
  FileLayout layout;
  for (const std::string& name :
       {std::string("a\0b", 3), std::string("\xff\xfe"), std::string("."),
        std::string(".."), std::string("%2E"), std::string("\n"),
        std::string(5000, '/'), std::string("a\0", 2)})
    layout.parameters.push_back(
        {name, name, 1, {1}, {{"value", DType::float32}}});
  write_sample(folder / "file.h5", layout);
  EXPECT_EQ(text_of(CheckpointReader(folder / "file.h5").layout()),
            text_of(layout));
  const SilentHdf5 silence;
  const Handle file = open_to_write(folder / "file.h5");
  for (const std::string& link :
       link_names(open_group(file.get(), "parameters").get())) {
    const Handle place = open_group(file.get(), "parameters/" + link);
    EXPECT_EQ(read_text(place.get(), "name"), read_text(place.get(), "group"));
  }
}

TEST(CheckpointFile, RefusesOtherFiles) {
  const ScratchFolder folder;
  EXPECT_TRUE(says(error_of_reading(folder / "none.h5"),
                   {"none.h5", "No such file or directory"}));
  EXPECT_TRUE(says(error_of_reading(folder.path()), {"Is a directory"}));
  write_bytes(folder / "text", "hello");
  EXPECT_TRUE(says(error_of_reading(folder / "text"), {"not an HDF5 file"}));
  write_bytes(folder / "nothing", "");
  EXPECT_TRUE(says(error_of_reading(folder / "nothing"), {"not an HDF5 file"}));
  own(H5Fcreate((folder / "other.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT,
                H5P_DEFAULT),
      H5Fclose, "H5Fcreate");
  EXPECT_TRUE(
      says(error_of_reading(folder / "other.h5"), {"not one of kzero"}));
}

TEST(CheckpointFile, RefusesATruncatedFile) {
  const ScratchFolder folder;
  write_sample(folder / "file.h5");
  const std::string bytes = file_bytes(folder / "file.h5");
  for (std::size_t size = 1; size < bytes.size(); size = size * 3 / 2 + 1) {
    write_bytes(folder / "part.h5", bytes.substr(0, size));
    EXPECT_TRUE(says(error_of_reading(folder / "part.h5"), {"part.h5"}))
        << size;
  }
  write_bytes(folder / "part.h5", bytes.substr(0, bytes.size() - 1));
  EXPECT_TRUE(says(error_of_reading(folder / "part.h5"), {"truncated"}));
}

TEST(CheckpointFile, RefusesAnIncompleteFile) {
  const ScratchFolder folder;
  write_sample(folder / "file.h5");
  rewrite_attribute(open_to_write(folder / "file.h5").get(), "complete", 0);
  EXPECT_TRUE(says(error_of_reading(folder / "file.h5"), {"incomplete"}));
}

TEST(CheckpointFile, RefusesNewerMajorVersionsOnly) {
  const ScratchFolder folder;
  write_sample(folder / "file.h5");
  const auto set_version = [&](std::int64_t major, std::int64_t minor) {
    const Handle file = open_to_write(folder / "file.h5");
    H5Adelete(file.get(), "format_version");
    const std::int64_t version[] = {major, minor};
    write_attribute(file.get(), "format_version",
                    std::span<const std::int64_t>(version));
  };
  set_version(format_major, format_minor + 7);
  EXPECT_EQ(error_of_reading(folder / "file.h5"), no_error);
  set_version(format_major + 1, 0);
  EXPECT_TRUE(says(error_of_reading(folder / "file.h5"),
                   {"format version 2.0", "newer kzero"}));
  set_version(0, 9);
  EXPECT_TRUE(says(error_of_reading(folder / "file.h5"), {"0.9"}));
}

TEST(CheckpointFile, NamesWhatIsWrongInside) {
  const ScratchFolder folder;
  const auto spoiled = [&](auto&& spoil) {
    write_sample(folder / "file.h5");
    spoil(open_to_write(folder / "file.h5").get());
    return error_of_reading(folder / "file.h5");
  };
  EXPECT_TRUE(says(spoiled([](hid_t file) {
                     H5Ldelete(file, "parameters/half/value", H5P_DEFAULT);
                   }),
                   {"\"half\"", "value"}));
  EXPECT_TRUE(says(spoiled([](hid_t file) {
                     H5Ldelete(file, "parameters/half/main", H5P_DEFAULT);
                     create_dataset(file, "parameters/half/main", H5T_STD_I32LE,
                                    {});
                   }),
                   {"\"half\"", "\"main\"", "foreign"}));
  EXPECT_TRUE(says(spoiled([](hid_t file) {
                     H5Ldelete(file, "parameters/half/main", H5P_DEFAULT);
                     create_dataset(file, "parameters/half/main",
                                    H5T_IEEE_F32LE, {});
                   }),
                   {"\"half\"", "\"main\"", "(65536)"}));
  EXPECT_TRUE(says(
      spoiled([](hid_t file) { H5Ldelete(file, "optimizer", H5P_DEFAULT); }),
      {"optimizer"}));
  EXPECT_TRUE(says(spoiled([](hid_t file) {
                     H5Adelete_by_name(file, "optimizer/default", "rule",
                                       H5P_DEFAULT);
                   }),
                   {"\"default\"", "\"rule\"", "missing"}));
  EXPECT_TRUE(says(spoiled([](hid_t file) {
                     H5Adelete_by_name(file, "scaler", "good_steps",
                                       H5P_DEFAULT);
                   }),
                   {"/scaler", "\"good_steps\"", "missing"}));
  for (const auto& each :
       {std::array{"parameters/half", "parameters/%68alf", "\"half\""},
        std::array{"optimizer/default", "optimizer/%64efault", "\"default\""},
        std::array{"user/note", "user/%6Eote", "\"note\""}})
    EXPECT_TRUE(says(spoiled([&](hid_t file) {
                       H5Lcreate_hard(file, each[0], file, each[1], H5P_DEFAULT,
                                      H5P_DEFAULT);
                     }),
                     {each[2], "two links"}));
  EXPECT_TRUE(says(spoiled([](hid_t file) { H5Adelete(file, "step"); }),
                   {"\"step\"", "missing"}));
}

TEST(CheckpointFile, HasNoScalerInFormat10) {
  const ScratchFolder folder;
  write_sample(folder / "file.h5");
  {
    const Handle file = open_to_write(folder / "file.h5");
    H5Ldelete(file.get(), "scaler", H5P_DEFAULT);
    H5Adelete(file.get(), "format_version");
    const std::int64_t version[] = {1, 0};
    write_attribute(file.get(), "format_version",
                    std::span<const std::int64_t>(version));
  }
  const FileLayout layout = CheckpointReader(folder / "file.h5").layout();
  EXPECT_FALSE(layout.scaler.has_value());
  EXPECT_EQ(layout.parameters.size(), sample_layout().parameters.size());
}

// Every byte at which the disk can be full: an error each time, and nothing is
// left of the file.
TEST(CheckpointFile, EndsInAnErrorWhereverTheDiskIsFull) {
  const ScratchFolder folder;
  FileLayout layout = sample_layout();
  layout.parameters.resize(2);
  layout.parameters[0].extents = {16, 8};
  layout.parameters[1].extents = {1000};
  write_sample(folder / "file.h5", layout);
  const std::string good = file_bytes(folder / "file.h5");
  for (std::size_t limit = 0; limit < good.size(); limit += 97) {
    const FileSizeLimit full(limit);
    EXPECT_TRUE(says(
        checkpoint_error([&] { write_sample(folder / "file.h5", layout); }),
        {"file.h5", "File too large", "at byte"}))
        << limit;
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file.h5"});
  EXPECT_EQ(file_bytes(folder / "file.h5"), good);
  EXPECT_EQ(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL), 0);
}

TEST(CheckpointFile, LeavesTheErrorPrintingOfHdf5Alone) {
  const ScratchFolder folder;
  H5E_auto2_t before = nullptr;
  H5E_auto2_t after = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  testing::internal::CaptureStderr();
  error_of_reading(folder / "none.h5");
  write_bytes(folder / "text", std::string(3000, 'x'));
  error_of_reading(folder / "text");
  write_sample(folder / "file.h5");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  EXPECT_EQ(before, after);
  EXPECT_NE(after, nullptr);
}

class ReadWithH5py : public testing::Test {
 public:
  explicit ReadWithH5py(std::string python) : python_(std::move(python)) {}

  void TestBody() override {
    const ScratchFolder folder;
    write_sample(folder / "file.h5");
    const auto script = std::filesystem::path(KZERO_TEST_DATA).parent_path() /
                        "io" / "read_with_h5py.py";
    const std::string command = python_ + " '" + script.string() + "' '" +
                                (folder / "file.h5").string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

 private:
  std::string python_;
};

// Registered where h5py is installed.
[[maybe_unused]] const bool registered = [] {
  const std::string python = python_with_h5py();
  if (!python.empty())
    testing::RegisterTest(
        "CheckpointFile", "IsReadByH5py", nullptr, nullptr, __FILE__, __LINE__,
        [=]() -> testing::Test* { return new ReadWithH5py(python); });
  return !python.empty();
}();

}  // namespace
