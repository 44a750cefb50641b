// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Memory that processes share is in huge pages, by the operating system's own
// figures, where it can be.
#include "comm/huge_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "comm/shared_memory.hpp"
#include "storage/storage.hpp"
#include "support/mapping.hpp"

namespace kzero::detail {
namespace {

constexpr std::int64_t bytes = 4 * huge_page;

/// Of its own, apart from the library.
bool has_system_shared_huge_pages() {
  std::string setting;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
               setting);
  if (setting.empty() || setting.find("[never]") != std::string::npos)
    return false;
  const auto size = static_cast<std::size_t>(huge_page);
  const int file = memfd_create("test", 0);
  bool has = false;
  if (file >= 0 && ftruncate(file, huge_page) == 0) {
    auto* const room = static_cast<std::byte*>(
        mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto place = reinterpret_cast<std::uintptr_t>(room);
    void* const aligned = room + (size - place % size) % size;
    void* const data = mmap(aligned, size, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED, file, 0);
    if (data != MAP_FAILED) {
      *static_cast<volatile char*>(data) = 1;
      constexpr int collapse = 25;
      has = madvise(data, size, collapse) == 0;
    }
    (void)munmap(room, 2 * size);
  }
  (void)close(file);
  return has;
}

TEST(HugePages, HoldSharedMemoryWhereverItIsMapped) {
  SharedMemory memory = SharedMemory::create(bytes - 100);
  ASSERT_EQ(memory.bytes(), bytes);
  touch_with_zeros(memory.data(), bytes, ExecutionSpace());
  const SharedMemory peer = SharedMemory::open(process_id(), memory.handle(),
                                               SharedMemory::Access::read);
  memory.data()[5] = std::byte{7};
  EXPECT_EQ(peer.data()[5], std::byte{7});
  for (std::int64_t i = 0; i < bytes; i += 4096)
    EXPECT_EQ(peer.data()[i], std::byte{});
  if (!has_system_shared_huge_pages())
    GTEST_SKIP() << "this system has none for shared memory";
  EXPECT_EQ(test::mapping_bytes(memory.data(), "ShmemPmdMapped"), bytes);
  EXPECT_EQ(test::mapping_bytes(peer.data(), "ShmemPmdMapped"), bytes);
}

// What is no whole huge page is touched, and nothing beside it.
TEST(HugePages, TouchTakesAnyPlaceAndSize) {
  SharedMemory memory = SharedMemory::create(bytes);
  std::byte* const data = memory.data();
  std::fill(data, data + bytes, std::byte{9});
  const std::int64_t begin = huge_page - 64;
  const std::int64_t end = 3 * huge_page + 128;
  touch_with_zeros(data + begin, end - begin, ExecutionSpace());
  touch_with_zeros(data + begin, 0, ExecutionSpace());
  for (std::int64_t i = 0; i < bytes; ++i)
    ASSERT_EQ(data[i], i < begin || i >= end ? std::byte{9} : std::byte{});
}

}  // namespace
}  // namespace kzero::detail
