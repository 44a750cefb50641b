// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case 24, on a file system that is really full. Registered where one can be
// mounted.
#include <gtest/gtest.h>

#include <kzero/checkpoint.hpp>
#include <memory>

#include "io/checkpoint_error.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "io/small_disk.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

ShardedOptimizer make(std::int64_t elements) {
  ParameterSet model;
  model.add("p", {elements});
  return ShardedOptimizer(world(), model, {});
}

class FullDisk : public testing::Test {
 public:
  void TestBody() override {
    const ScratchFolder folder(MPI_COMM_WORLD);
    std::unique_ptr<SmallDisk> disk;
    auto small = make(40000);
    auto large = make(400000);
    const bool root = small.communicator()->rank() == 0;
    if (root) disk = std::make_unique<SmallDisk>(folder.path());

    save_checkpoint(small, folder / "c.h5");
    const std::string old = root ? file_bytes(folder / "c.h5") : "";
    const std::string message =
        checkpoint_error([&] { save_checkpoint(large, folder / "c.h5"); });
    EXPECT_TRUE(says(message, {"c.h5", "No space left on device", "it takes 48",
                               "bytes", "are free"}));
    if (root) {
      EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
      EXPECT_EQ(file_bytes(folder / "c.h5"), old);
    }
    load_checkpoint(small, folder / "c.h5");
    EXPECT_TRUE(small.step().updated());
    EXPECT_TRUE(large.step().updated());
  }
};

[[maybe_unused]] const bool registered = [] {
  if (!SmallDisk::available()) return false;
  testing::RegisterTest("FullDisk", "LeavesTheOldFile", nullptr, nullptr,
                        __FILE__, __LINE__,
                        []() -> testing::Test* { return new FullDisk; });
  return true;
}();

}  // namespace
}  // namespace kzero::test
