// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A real file system of 2 MiB, seen by this process alone.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace kzero::test {

/// Mounted over a folder as long as it lives. Linux, and for root only.
class SmallDisk {
 public:
  explicit SmallDisk(const std::filesystem::path& folder) : folder_(folder) {
    // The mounts of this process are its own: nothing is left when it dies.
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=2m") != 0)
      throw std::system_error(errno, std::generic_category(), "mount");
  }
  ~SmallDisk() { umount(folder_.c_str()); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Whether it can be had here: tried in another process.
  static bool available() {
    const pid_t child = fork();
    if (child == 0) {
      try {
        const SmallDisk disk(std::filesystem::temp_directory_path());
        _exit(0);
      } catch (...) {
        _exit(1);
      }
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace kzero::test
