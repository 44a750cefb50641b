// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A folder for a test's files, removed at its end.
#pragma once

#include <mpi.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace kzero::test {

class ScratchFolder {
 public:
  /// Local: a folder of this process.
  ScratchFolder() { create(); }

  /// Collective, as is its destructor: one folder, made and removed by rank 0.
  explicit ScratchFolder(MPI_Comm communicator) : communicator_(communicator) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    if (rank == 0) create();
    std::array<char, 4096> text = {};
    path_.string().copy(text.data(), text.size() - 1);
    MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0,
              communicator);
    path_ = text.data();
  }

  ~ScratchFolder() {
    if (communicator_ != MPI_COMM_NULL) MPI_Barrier(communicator_);
    std::error_code ignored;
    if (owner_) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

  /// Names of the files in it but for "latest", sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (entry.path().filename() != "latest")
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  void create() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "kzero_test_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), pattern);
    path_ = pattern;
    owner_ = true;
  }

  std::filesystem::path path_;
  bool owner_ = false;
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

inline std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_bytes(const std::filesystem::path& path,
                        const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace kzero::test
