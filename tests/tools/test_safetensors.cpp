// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/safetensors.hpp"

#include <gtest/gtest.h>

#include <string>

#include "io/checkpoint_error.hpp"
#include "io/sample_file.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

using tools::OtherTypes;

std::string entry(const std::string& name, const std::string& type,
                  const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}";
}

std::string refusal(const std::string& text, std::int64_t bytes) {
  try {
    tools::parse_safetensors(text, bytes, OtherTypes::refuse);
  } catch (const std::exception& error) {
    return error.what();
  }
  return no_error;
}

TEST(Safetensors, HeaderIsRead) {
  const std::string text = "{" + entry("b", "F32", "[2,3]", "[8,32]") + "," +
                           entry("a", "I64", "[]", "[0,8]") + "," +
                           entry("none", "BF16", "[0,7]", "[8,8]") +
                           R"(,"__metadata__":{"step":"4"}}   )";
  const auto header = tools::parse_safetensors(text, 32, OtherTypes::refuse);
  ASSERT_EQ(header.entries.size(), 3u);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[2].begin, 8);
  EXPECT_EQ(header.metadata.at("step"), "4");
}

TEST(Safetensors, WrongHeadersAreRefused) {
  const std::string good = entry("a", "F32", "[2]", "[0,8]");
  const auto refused = [](const std::string& text, std::int64_t bytes,
                          std::initializer_list<const char*> words) {
    EXPECT_TRUE(says(refusal(text, bytes), words)) << text;
  };
  refused("", 0, {"parse error"});
  refused("[]", 0, {"object"});
  refused("{" + good, 8, {"parse error"});
  refused("{" + good + "," + good + "}", 8, {"twice"});
  refused("{" + good + "}", 9, {"8 bytes", "9"});
  refused("{" + good + "}", 7, {"8 bytes", "7"});
  refused("{" + entry("a", "F32", "[3]", "[0,8]") + "}", 8, {"8 bytes", "(3)"});
  refused("{" + entry("a", "F32", "[-2]", "[0,8]") + "}", 8, {"shape"});
  refused("{" + entry("a", "F32", "[4611686018427387904,4]", "[0,8]") + "}", 8,
          {"shape"});
  refused("{" + entry("a", "F32", "[2]", "[8,0]") + "}", 8, {"data_offsets"});
  refused("{" + entry("a", "F32", "[2]", "[-8,0]") + "}", 8, {"data_offsets"});
  refused("{" + entry("a", "F32", "[2]", "[0]") + "}", 8, {"data_offsets"});
  refused("{" + entry("a", "F32", "2", "[0,8]") + "}", 8, {"list"});
  refused("{" + entry("a", "F32", "[2.0]", "[0,8]") + "}", 8, {"integer"});
  refused("{" + entry("a", "U8", "[8]", "[0,8]") + "}", 8,
          {"U8", "--skip-other-types"});
  refused("{" + good + "," + entry("b", "F32", "[2]", "[4,12]") + "}", 12,
          {"byte 4", "expected 8"});
  refused("{" + good + "," + entry("b", "F32", "[1]", "[12,16]") + "}", 16,
          {"byte 12", "expected 8"});
  refused(R"({"a":{"dtype":"F32","shape":[2]}})", 8, {"data_offsets"});
  refused(R"({"a":3})", 8, {"object"});
  refused(R"({"__metadata__":{"a":3}})", 0, {"string"});
  refused(R"({"__metadata__":3})", 0, {"object"});
  refused("{\"a\":" + std::string(100000, '['), 0, {"nested"});
}

TEST(Safetensors, WrongFilesAreRefused) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& bytes,
                           std::initializer_list<const char*> words) {
    write_bytes(folder / "x", bytes);
    EXPECT_TRUE(says(checkpoint_error([&] {
                       tools::read_safetensors(folder / "x",
                                               OtherTypes::refuse);
                     }),
                     words));
  };
  refused("", {"x", "8 bytes"});
  refused("1234567", {"8 bytes"});
  refused(std::string(8, '\xff'), {"header", "at most 0"});
  refused(std::string("\x03\0\0\0\0\0\0\0{}", 10), {"3 bytes", "at most 2"});
  refused(std::string("\x02\0\0\0\0\0\0\0{}!", 11), {"0 bytes", "1"});
}

}  // namespace
}  // namespace kzero::test
