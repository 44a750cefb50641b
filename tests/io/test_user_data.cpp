// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/error.hpp>
#include <limits>
#include <string>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/scratch_folder.hpp"
#include "io/user_data.hpp"
#include "io/user_data_wire.hpp"

using namespace kzero;
using namespace kzero::detail;
using namespace kzero::test;

namespace {

UserData all_kinds() {
  return {
      {"epoch", std::int64_t{-7}},
      {"largest", std::numeric_limits<std::int64_t>::max()},
      {"loss", 0.1},
      {"note", std::string("größer als λ")},
      {"empty", std::string()},
      {"nul", std::string("a\0b\0", 4)},
      {"one nul", std::string(1, '\0')},
      {"bytes", std::string("\xff\xfe")},
      {"long", std::string(200000, 'x')},
      {"seeds", UserArray<std::int64_t>{{2, 2}, {1, -2, 3, -4}}},
      {"curve", UserArray<double>{{3}, {1.5, -0.0, 1e-310}}},
      {"image", UserArray<float>{{1, 2, 2}, {1.f, 2.f, 3.f, 4.f}}},
      {"nothing", UserArray<double>{{0, 5}, {}}},
      {"files", std::vector<std::string>{"a", "", "ü"}},
      {"no files", std::vector<std::string>{}},
      {"path/with % and .", std::int64_t{1}},
      {"..", 2.0},
      {std::string("n\0l", 3), 3.0},
  };
}

/// What comes back from a file.
UserData through_file(const UserData& user) {
  const ScratchFolder folder;
  FileLayout layout;
  layout.content.user = user;
  CheckpointWriter writer(folder / "user.h5", layout);
  writer.finish();
  writer.take_name();
  return CheckpointReader(folder / "user.h5").layout().content.user;
}

std::string refusal(const UserData& user) {
  return checkpoint_error([&] { check_user_data(user); });
}

TEST(UserData, ComesBackFromAFile) {
  check_user_data(all_kinds());
  EXPECT_EQ(through_file(all_kinds()), all_kinds());
  EXPECT_EQ(through_file({}), UserData{});
}

TEST(UserData, ComesBackFromTheWire) {
  WireWriter writer;
  put(writer, all_kinds());
  UserData received;
  WireReader reader(writer.bytes());
  take(reader, received);
  EXPECT_EQ(received, all_kinds());
}

TEST(UserData, CutShortOnTheWireIsAnError) {
  WireWriter writer;
  put(writer, all_kinds());
  for (std::size_t size = 0; size < writer.bytes().size();
       size += size < 2000 ? 1 : 997) {
    UserData received;
    WireReader reader(std::span(writer.bytes()).first(size));
    EXPECT_THROW(take(reader, received), CommunicationError) << size;
  }
}

TEST(UserData, RefusesWhatAFileCannotHold) {
  EXPECT_TRUE(says(refusal({{"", 1.0}}), {"without a name"}));
  EXPECT_TRUE(says(refusal({{"curve", UserArray<double>{{2, 2}, {1, 2, 3}}}}),
                   {"\"curve\"", "(2, 2)", "3 values"}));
  const std::int64_t half = std::int64_t{1} << 32;
  for (const auto& extents : std::vector<std::vector<std::int64_t>>{
           {}, {-1}, {0, -1}, {half, half}, std::vector<std::int64_t>(33, 1)})
    EXPECT_NE(refusal({{"a", UserArray<float>{extents, {}}}}), no_error);
  EXPECT_NE(refusal({{"a", std::vector<std::string>{std::string("x\0", 2)}}}),
            no_error);
}

}  // namespace
