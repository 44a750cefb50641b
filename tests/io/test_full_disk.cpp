// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case 24, on a file system that is really full: before the first byte is
// written, or when another program has filled it in the middle. Registered
// where one can be mounted.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <kzero/checkpoint.hpp>
#include <memory>
#include <utility>

#include "io/checkpoint_error.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "io/small_disk.hpp"
#include "support/optimizer_support.hpp"

namespace {

bool sets_room_aside = true;
/// Called before a write; the count is 0 at the one that is meant.
int writes_before = -1;
std::function<void()> before_write;

void count_write() {
  if (writes_before >= 0 && writes_before-- == 0) before_write();
}

}  // namespace

/// These take the place of the C library's: a file system that cannot set room
/// aside, and a disk that others write to.
extern "C" {

int fallocate(int file, int mode, off_t begin, off_t bytes) {
  if (!sets_room_aside) return errno = EOPNOTSUPP, -1;
  return static_cast<int>(syscall(SYS_fallocate, file, mode, begin, bytes));
}

ssize_t pwrite(int file, const void* data, size_t size, off_t place) {
  count_write();
  return syscall(SYS_pwrite64, file, data, size, place);
}

ssize_t pwritev(int file, const iovec* parts, int count, off_t place) {
  count_write();
  return syscall(SYS_pwritev, file, parts, count, place, 0L);
}
}

namespace kzero::test {
namespace {

ShardedOptimizer make(std::int64_t elements) {
  ParameterSet model;
  model.add("p", {elements});
  return ShardedOptimizer(world(), model, {});
}

class FullDisk : public testing::Test {
 protected:
  FullDisk() {
    if (root) disk = std::make_unique<SmallDisk>(folder.path());
  }

  void expect_only_old(const std::string& old) const {
    if (!root) return;
    EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
    EXPECT_EQ(file_bytes(folder / "c.h5"), old);
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  ShardedOptimizer small = make(40000);
  const bool root = small.communicator()->rank() == 0;
  std::unique_ptr<SmallDisk> disk;
};

class BeforeTheFirstByte : public FullDisk {
 public:
  void TestBody() override {
    auto large = make(400000);
    save_checkpoint(small, folder / "c.h5");
    const std::string old = root ? file_bytes(folder / "c.h5") : "";
    for (const bool aside : {true, false}) {
      sets_room_aside = aside;
      const std::string message =
          checkpoint_error([&] { save_checkpoint(large, folder / "c.h5"); });
      EXPECT_TRUE(says(message, {"c.h5", "No space left on device",
                                 "it takes 48", "bytes", "are free"}));
      expect_only_old(old);
    }
    sets_room_aside = true;
    load_checkpoint(small, folder / "c.h5");
    EXPECT_TRUE(small.step().updated());
    EXPECT_TRUE(large.step().updated());
  }
};

/// Rank `rank` finds the disk full at its write of this number.
struct Moment {
  Engine engine = Engine::direct;
  int rank = 0;
  int write = 0;
};

class InTheMiddle : public FullDisk {
 public:
  void TestBody() override {
    join_disk();
    auto large = make(80000);
    save_checkpoint(small, folder / "c.h5");
    const std::string old = file_bytes(folder / "c.h5");
    MPI_Barrier(MPI_COMM_WORLD);
    sets_room_aside = false;
    const int last = small.communicator()->size() - 1;
    for (const Moment& moment : {Moment{Engine::direct, 0, 1},
                                 {Engine::direct, 0, 2},
                                 {Engine::direct, last, last == 0 ? 3 : 0},
                                 {Engine::gather, 0, 1},
                                 {Engine::gather, 0, 3}}) {
      const std::string message = fill_while_saving(large, moment);
      EXPECT_TRUE(says(message, {"c.h5", "No space left on device",
                                 "writing stopped at byte", "untouched"}));
      expect_only_old(old);
    }
    sets_room_aside = true;
    load_checkpoint(small, folder / "c.h5");
    EXPECT_TRUE(large.step().updated());
    save_checkpoint(large, folder / "c.h5");
    load_checkpoint(large, folder / "c.h5");
  }

 private:
  /// Every rank sees the disk.
  void join_disk() {
    pid_t process = getpid();
    MPI_Bcast(&process, sizeof process, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (!root) SmallDisk::join(process);
  }

  void fill() const {
    const int file =
        open((folder / "filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::vector<char> block(4096, 'x');
    while (::write(file, block.data(), block.size()) > 0) continue;
    EXPECT_EQ(errno, ENOSPC);
    close(file);
  }

  /// The message, the same on every rank.
  std::string fill_while_saving(ShardedOptimizer& optimizer,
                                const Moment& moment) const {
    before_write = [this] { fill(); };
    if (optimizer.communicator()->rank() == moment.rank)
      writes_before = moment.write;
    const std::string message = checkpoint_error([&] {
      save_checkpoint(optimizer, folder / "c.h5", {.engine = moment.engine});
    });
    EXPECT_LT(writes_before, 0) << "there was no such write";
    writes_before = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (root) std::filesystem::remove(folder / "filler");
    MPI_Barrier(MPI_COMM_WORLD);
    Snapshot roots = {{"message", message}};
    broadcast(roots, MPI_COMM_WORLD);
    EXPECT_EQ(message, roots["message"]);
    return message;
  }
};

template <class Test>
void register_test(const char* name) {
  testing::RegisterTest("FullDisk", name, nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test* { return new Test; });
}

[[maybe_unused]] const bool registered = [] {
  if (!SmallDisk::available()) return false;
  register_test<BeforeTheFirstByte>("LeavesTheOldFile");
  register_test<InTheMiddle>("InTheMiddleLeavesTheOldFile");
  return true;
}();

}  // namespace
}  // namespace kzero::test
