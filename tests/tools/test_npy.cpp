// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/npy.hpp"

#include <gtest/gtest.h>

#include <string>

#include "io/checkpoint_error.hpp"

namespace kzero::test {
namespace {

std::string with_prelude(const std::string& dictionary, int major = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    text += static_cast<char>(dictionary.size() >> (8 * i));
  return text + dictionary;
}

std::string refusal(const std::string& header) {
  try {
    tools::parse_npy_header(header);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return no_error;
}

TEST(Npy, HeadersAreRead) {
  for (const int major : {1, 2, 3}) {
    const auto header = tools::parse_npy_header(with_prelude(
        "{'shape': (3, 4L,), \"descr\": '>f8', 'fortran_order': True}\n",
        major));
    EXPECT_EQ(header.type, ">f8");
    EXPECT_TRUE(header.fortran_order);
    EXPECT_TRUE(header.is_big_endian());
    EXPECT_EQ(header.extents, (std::vector<std::int64_t>{3, 4}));
    EXPECT_EQ(tools::type_of(header), tools::TensorType::float64);
  }
}

TEST(Npy, HeadersThatAreWrittenAreRead) {
  for (const std::vector<std::int64_t>& extents :
       std::vector<std::vector<std::int64_t>>{
           {}, {0}, {7}, {3, 5, 1}, std::vector<std::int64_t>(32, 1)}) {
    const std::string text = tools::npy_header("<f4", extents);
    EXPECT_EQ(text.size() % 64, 0u);
    EXPECT_EQ(tools::npy_header_bytes(text), std::ssize(text));
    const auto header = tools::parse_npy_header(text);
    EXPECT_EQ(header.extents, extents);
    EXPECT_EQ(header.type, "<f4");
    EXPECT_FALSE(header.fortran_order);
  }
}

TEST(Npy, WrongHeadersAreRefused) {
  const std::string rest = "'fortran_order': False, 'shape': (2,)}";
  const auto refused = [](const std::string& header,
                          std::initializer_list<const char*> words) {
    EXPECT_TRUE(says(refusal(header), words)) << header;
  };
  refused("", {"no array"});
  refused("PK\3\4 and so on and on", {"no array"});
  refused(with_prelude("{}", 4), {"version 4"});
  refused(with_prelude(std::string(2 << 20, ' '), 2), {"2097152 bytes"});
  refused(with_prelude("{}") + " ", {"cut"});
  refused(with_prelude("{'descr': '<f4', " + rest + " x"), {"behind its end"});
  refused(with_prelude("{'descr': '<f4'}   "), {"has not"});
  refused(with_prelude("{'descr': '<f4', 'descr': '<f4', " + rest), {"twice"});
  refused(with_prelude("{'descr': [('a', '<f4')], " + rest), {"records"});
  refused(with_prelude("{'descr': '<f4, " + rest), {"expected"});
  refused(with_prelude("{'descr': '<f4"), {"no end"});
  refused(with_prelude("{'descr': '', " + rest), {"type"});
  refused(with_prelude("{'more': '<f4', " + rest), {"more"});
  refused(with_prelude("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}"),
          {"fortran_order"});
  for (const char* shape :
       {"(-1,)", "(2 3)", "(2,", "(9999999999999999999,)", "2", "(a)", "(,)"})
    EXPECT_NE(refusal(with_prelude(
                  std::string("{'descr': '<f4', 'fortran_order': False, "
                              "'shape': ") +
                  shape + "}")),
              no_error)
        << shape;
}

TEST(Npy, OtherTypesAreNone) {
  for (const char* type : {"|V2", "<c8", "<i4", "<U3", "|b1", "<f16", "=f4"})
    EXPECT_FALSE(tools::type_of(tools::NpyHeader{type, false, {}})) << type;
  EXPECT_THROW(tools::npy_type(tools::TensorType::bfloat16), InvalidArgument);
}

}  // namespace
}  // namespace kzero::test
