// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A real file system of 2 MiB, seen by this process and whoever joins it.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
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

  /// Lets this thread see what the main thread of that process has mounted.
  static void join(pid_t process) {
    const std::string name = "/proc/" + std::to_string(process) + "/ns/mnt";
    const int mounts = open(name.c_str(), O_RDONLY | O_CLOEXEC);
    // Threads that share a root folder cannot change their mounts.
    const bool joined = mounts >= 0 && unshare(CLONE_FS) == 0 &&
                        setns(mounts, CLONE_NEWNS) == 0;
    const int error = errno;
    close(mounts);
    if (!joined) throw std::system_error(error, std::generic_category(), name);
  }

  /// Whether it can be had here: tried in another process.
  static bool available() {
    const pid_t child = fork();
    if (child == 0) {
      try {
        const SmallDisk disk(std::filesystem::temp_directory_path());
        join(getpid());
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
