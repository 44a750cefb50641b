// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A folder in which this thread can create nothing, also as root.
#pragma once

#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace kzero::test {

/// As long as it lives. Permissions do not hold for root: it goes to files as
/// somebody else meanwhile.
class ReadOnlyFolder {
 public:
  explicit ReadOnlyFolder(const std::filesystem::path& folder)
      : folder_(folder) {
    using std::filesystem::perms;
    std::filesystem::permissions(
        folder, perms::all & ~(perms::owner_write | perms::group_write |
                               perms::others_write));
    if (geteuid() == 0) as_user(nobody);
  }
  ~ReadOnlyFolder() {
    if (geteuid() == 0) as_user(0);
    std::error_code ignored;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all,
                                 ignored);
  }
  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;

  /// Whether that has been achieved here.
  bool holds() const {
    const std::filesystem::path file = folder_ / "is this possible";
    const bool created = std::ofstream(file).is_open();
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    return !created;
  }

 private:
  static constexpr uid_t nobody = 65534;

  static void as_user(uid_t user) {
    setfsuid(user);
    // Peers on this machine may read this process' memory as before.
    prctl(PR_SET_DUMPABLE, 1);
  }

  std::filesystem::path folder_;
};

}  // namespace kzero::test
