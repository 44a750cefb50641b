// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A file that is written under a temporary name and takes its own name only
// when all of it lies on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kzero::detail {

/// Local, of one rank. The destructor removes the temporary file.
///
/// Writing never throws: the first failure is kept for check(), and from then
/// on the disk is left alone. HDF5 writes through this class; a file that HDF5
/// cannot flush stays half open inside it, and closing that a second time, or
/// the end of the process, is a crash (1.10.8). So HDF5 never learns of a full
/// disk. What it writes of its metadata after a failure is kept in memory,
/// because it can read that again before it closes the file.
class NewFile {
 public:
  /// Creates the temporary file beside path. Throws CheckpointError when path
  /// names no file or a folder, and when the file cannot be created.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }

  enum class Content { metadata, data };
  void write(std::int64_t offset, const void* data, std::size_t bytes,
             Content content) noexcept;
  /// What was written; zeros where nothing was.
  bool read(std::int64_t offset, void* data, std::size_t bytes) const noexcept;
  void resize(std::int64_t bytes) noexcept;
  std::int64_t size() const { return size_; }

  /// Throws CheckpointError when the disk has no room for this many bytes.
  /// Where the file system can, they are set aside.
  void reserve(std::int64_t bytes);

  /// Throws CheckpointError when a write has failed.
  void check() const;

  /// Returns when all lies on disk. Throws CheckpointError.
  void sync();

  /// Gives the file its name in place of what had it. Throws CheckpointError.
  void take_name();

 private:
  [[noreturn]] void fail(int error, const std::string& what) const;
  void keep_failure(int error, std::int64_t offset) noexcept;
  void close() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::int64_t reserved_ = 0;
  int error_ = 0;  // errno of the first failure
  std::int64_t error_offset_ = 0;
  std::vector<std::pair<std::int64_t, std::vector<char>>> after_failure_;
};

/// The text of an errno value.
std::string error_text(int error);

}  // namespace kzero::detail
