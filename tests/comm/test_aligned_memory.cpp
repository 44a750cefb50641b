// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <cstring>
#include <kzero/error.hpp>
#include <limits>
#include <memory>

#include "comm/aligned_memory.hpp"

namespace kzero::detail {
namespace {

bool is_aligned(const void* memory, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignment == 0;
}

TEST(AlignedMemory, IsAlignedAndWritable) {
  const auto health = std::make_shared<Health>();
  for (const std::int64_t bytes : {0, 1, 63, 65, 4097, (2 << 20) + 3}) {
    const auto memory = allocate_shared(bytes, health);
    ASSERT_NE(memory, nullptr) << bytes;
    EXPECT_TRUE(is_aligned(memory.get(), 64)) << bytes;
    std::memset(memory.get(), 1, static_cast<std::size_t>(bytes));
  }
}

TEST(AlignedMemory, IsOnHugePagesWhenLarge) {
  void* memory = allocate_aligned(std::int64_t{5} << 20);
  EXPECT_TRUE(is_aligned(memory, std::size_t{2} << 20));
  free_aligned(memory);
}

TEST(AlignedMemory, RefusesWhatThereIsNot) {
  EXPECT_THROW(allocate_aligned(-1), InvalidArgument);
  try {
    allocate_aligned(std::numeric_limits<std::int64_t>::max() / 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("4611686018427387903 bytes"),
              std::string::npos)
        << error.what();
  }
}

TEST(AlignedMemory, StaysWhenTheCommunicatorBroke) {
  const auto health = std::make_shared<Health>();
  auto memory = allocate_shared(1000, health);
  auto* bytes = static_cast<char*>(memory.get());
  health->break_off("for this test");
  memory.reset();
  // What a late message does. A checker of memory would tell if it were gone.
  std::memset(bytes, 7, 1000);
  EXPECT_EQ(bytes[999], 7);
}

TEST(WorkSpace, GrowsAndIsKept) {
  WorkSpace space(std::make_shared<Health>());
  EXPECT_EQ(space.capacity(), 0);
  std::byte* first = space.reserve(100);
  EXPECT_EQ(space.reserve(50), first);
  EXPECT_EQ(space.capacity(), 100);
  space.reserve(200);
  EXPECT_EQ(space.capacity(), 200);
}

}  // namespace
}  // namespace kzero::detail
