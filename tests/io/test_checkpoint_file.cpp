// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <kzero/error.hpp>
#include <string>
#include <utility>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/edited_file.hpp"
#include "io/file_size_limit.hpp"
#include "io/hdf5_call.hpp"
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

TEST(CheckpointFile, ComesBackBitForBit) {
  const ScratchFolder folder;
  const FileLayout layout = sample_layout();
  write_sample(folder / "file.h5", layout);
  for (const Verify verify : {Verify::yes, Verify::no}) {
    const CheckpointReader reader(folder / "file.h5", verify);
    EXPECT_EQ(text_of(reader.layout()), text_of(layout));
    EXPECT_EQ(reader.layout().content.user, layout.content.user);
    EXPECT_EQ(read_contents(reader, layout), sample_contents(layout));
    reader.verify_arrays();
  }
}

// Whatever was written before, of this model or another.
TEST(CheckpointFile, HasTheSameBytesEachTime) {
  const ScratchFolder folder;
  write_sample(folder / "one.h5");
  FileLayout other = sample_layout();
  other.parameters.resize(1);
  other.content.user["epoch"] = std::string("many");
  write_sample(folder / "other.h5", other);
  other = sample_layout();
  other.content.step = 1000000;
  other.groups.pop_back();
  write_sample(folder / "third.h5", other);
  write_sample(folder / "two.h5");
  EXPECT_EQ(file_bytes(folder / "one.h5"), file_bytes(folder / "two.h5"));
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
  const std::string python = python_with_h5py();
  if (python.empty()) return;
  const std::string command =
      python +
      " -c 'import h5py, sys\nfor group in h5py.File(sys.argv[1])"
      "[\"parameters\"].values():\n if repr(group.attrs[\"name\"]) != "
      "repr(group.attrs[\"group\"]): sys.exit(1)' '" +
      (folder / "file.h5").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(CheckpointFile, RefusesOtherFiles) {
  const ScratchFolder folder;
  EXPECT_TRUE(says(error_of_reading(folder / "none.h5"),
                   {"none.h5", "No such file or directory"}));
  EXPECT_TRUE(says(error_of_reading(folder.path()), {"Is a directory"}));
  write_bytes(folder / "text", "hello");
  EXPECT_TRUE(says(error_of_reading(folder / "text"), {"no kzero checkpoint"}));
  write_bytes(folder / "nothing", "");
  EXPECT_TRUE(
      says(error_of_reading(folder / "nothing"), {"no kzero checkpoint"}));
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
  std::string bytes;
  {
    CheckpointWriter writer(folder / "file.h5", sample_layout());
    bytes = file_bytes(writer.file().temporary());
  }
  write_bytes(folder / "file.h5", bytes);
  EXPECT_TRUE(says(error_of_reading(folder / "file.h5"), {"incomplete"}));
}

TEST(CheckpointFile, RefusesOtherMajorVersionsOnly) {
  const ScratchFolder folder;
  write_sample(folder / "file.h5");
  const auto set_version = [&](std::int64_t major, std::int64_t minor) {
    edit_header(folder / "file.h5", [&](Json& json) {
      json["format_version"] = {major, minor};
      json["new"] = "unknown";
    });
  };
  set_version(format_major, format_minor + 7);
  EXPECT_EQ(error_of_reading(folder / "file.h5"), no_error);
  set_version(format_major + 1, 0);
  EXPECT_TRUE(says(error_of_reading(folder / "file.h5"),
                   {"format version 3.0", "newer kzero"}));
  set_version(1, 9);
  EXPECT_TRUE(says(error_of_reading(folder / "file.h5"), {"1.9"}));
}

// What is new in a minor version does not matter.
TEST(CheckpointFile, PassesOverWhatItDoesNotKnow) {
  const ScratchFolder folder;
  write_sample(folder / "file.h5");
  edit_manifest(folder / "file.h5", [](Json& json) {
    json["new"] = {{"a", 1}};
    json["parameters"][0]["new"] = 5;
    json.erase("scaler");
  });
  const CheckpointReader reader(folder / "file.h5");
  EXPECT_FALSE(reader.layout().scaler.has_value());
  EXPECT_EQ(read_contents(reader, sample_layout()),
            sample_contents(sample_layout()));
}

TEST(CheckpointFile, RefusesAManifestThatNoFileHas) {
  const ScratchFolder folder;
  const auto refusal = [&](const std::function<void(Json&)>& edit) {
    write_sample(folder / "file.h5");
    edit_manifest(folder / "file.h5", edit);
    return error_of_reading(folder / "file.h5");
  };
  const auto array = [](Json& json) -> Json& {
    return json["parameters"][1]["arrays"][1];
  };
  EXPECT_EQ(refusal([](Json&) {}), no_error);
  EXPECT_TRUE(says(refusal([](Json& json) { json.erase("step"); }),
                   {"manifest", "\"step\""}));
  EXPECT_TRUE(says(refusal([](Json& json) { json["groups"] = 5; }),
                   {"/groups is 5", "object"}));
  EXPECT_TRUE(
      says(refusal([](Json& json) { json["groups"]["default"].erase("rule"); }),
           {"/groups/default", "\"rule\""}));
  EXPECT_TRUE(says(refusal([](Json& json) {
                     json["groups"]["%64efault"] = json["groups"]["default"];
                   }),
                   {"\"default\" twice"}));
  EXPECT_TRUE(
      says(refusal([](Json& json) { json["scaler"].erase("good_steps"); }),
           {"/scaler", "good_steps"}));
  EXPECT_TRUE(says(refusal([](Json& json) {
                     json["parameters"][1]["name"] =
                         json["parameters"][0]["name"];
                   }),
                   {"two parameters", "z/first"}));
  EXPECT_TRUE(says(refusal([&](Json& json) { array(json)[0] = "value"; }),
                   {"two arrays", "value"}));
  EXPECT_TRUE(says(refusal([&](Json& json) { array(json)[1] = "int8"; }),
                   {"int8", "number type"}));
  EXPECT_TRUE(says(refusal([&](Json& json) { array(json)[3] = "12"; }),
                   {"hexadecimal"}));
  EXPECT_TRUE(
      says(refusal([](Json& json) { json["parameters"][0]["arrays"].clear(); }),
           {"value"}));
  // Places in the header, behind the end, and on one another.
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{4095},
                                   std::int64_t{-1}, std::int64_t{1} << 62})
    EXPECT_TRUE(says(refusal([&](Json& json) { array(json)[2] = place; }),
                     {"an array lies at byte"}));
  EXPECT_TRUE(says(refusal([&](Json& json) {
                     array(json)[2] = json["parameters"][1]["arrays"][2][2];
                   }),
                   {"another one"}));
  // Shapes that no file of this size has: nothing is allocated for them.
  for (const auto& extents : std::vector<std::vector<std::int64_t>>{
           {std::int64_t{1} << 40}, {-1}, {std::int64_t{1} << 62, 8}})
    EXPECT_NE(refusal([&](Json& json) {
                json["parameters"][1]["extents"] = extents;
              }),
              no_error);
  EXPECT_NE(refusal([](Json& json) {
              json["user"]["curve"]["extents"] = {std::int64_t{1} << 40};
            }),
            no_error);
  EXPECT_TRUE(
      says(refusal([](Json& json) { json["user"]["curve"]["type"] = "int8"; }),
           {"/user/curve", "int8"}));
}

// Each byte of a small file, one bit of it: what is refused is named, and what
// is loaded is right.
TEST(CheckpointFile, IsNeverLoadedWithAnotherBit) {
  const ScratchFolder folder;
  FileLayout layout = sample_layout();
  layout.parameters.resize(2);
  layout.parameters[0].extents = {16, 8};
  layout.parameters[1].extents = {100};
  write_sample(folder / "file.h5", layout);
  const std::string good = file_bytes(folder / "file.h5");
  for (std::size_t i = 0; i < good.size(); i += i < 8192 ? 7 : 101) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    write_bytes(folder / "bad.h5", bad);
    EXPECT_NE(error_of_reading(folder / "bad.h5"), no_error) << i;
  }
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
        {"file.h5", "File too large"}))
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
  /// script: from the source tree.
  ReadWithH5py(std::string python, std::string script)
      : python_(std::move(python)), script_(std::move(script)) {}

  void TestBody() override {
    const ScratchFolder folder;
    write_sample(folder / "file.h5");
    const auto script =
        std::filesystem::path(KZERO_TEST_DATA).parent_path().parent_path() /
        script_;
    const std::string command = python_ + " '" + script.string() + "' '" +
                                (folder / "file.h5").string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

 private:
  std::string python_;
  std::string script_;
};

// Registered where h5py is installed.
[[maybe_unused]] const bool registered = [] {
  const std::string python = python_with_h5py();
  if (!python.empty())
    for (const auto& [name, script] :
         {std::pair("IsReadByH5py", "tests/io/read_with_h5py.py"),
          {"IsReadByTheExample",
           "examples/05_read_checkpoint/read_checkpoint.py"}})
      testing::RegisterTest("CheckpointFile", name, nullptr, nullptr, __FILE__,
                            __LINE__, [=, of = script]() -> testing::Test* {
                              return new ReadWithH5py(python, of);
                            });
  return !python.empty();
}();

}  // namespace
