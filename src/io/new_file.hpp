// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A file that is written under a temporary name and takes its own name only
// when all of it lies on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "io/open_file.hpp"

namespace kzero::detail {

/// Whether what was written is to survive that the machine stops now.
enum class Durable { no, yes };

/// Why the checkpoint of this name cannot be written. error: an errno, or 0.
[[noreturn]] void throw_not_written(const std::filesystem::path& path,
                                    int error, const std::string& what);

/// Of one rank, which has made it. The destructor removes the temporary file.
/// All members throw CheckpointError.
class NewFile {
 public:
  /// Creates the temporary file beside path, with its mark at the beginning.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary() const { return temporary_; }
  /// What the temporary file of no other call begins with.
  const std::string& mark() const { return mark_; }

  /// Gives the file this size. Throws when the disk has no room for it; where
  /// the file system can, the room is set aside.
  void reserve(std::int64_t bytes);

  void write(std::int64_t place, const void* data, std::int64_t bytes);

  /// Closes it.
  void finish(Durable durable);

  /// Gives the file its name in place of what had it.
  void take_name(Durable durable);

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::string mark_;
  OpenFile file_;
  std::int64_t reserved_ = 0;
};

/// The same file for the other ranks, which write parts of it. Members throw
/// CheckpointError as those of NewFile.
class PartOfNewFile {
 public:
  PartOfNewFile() = default;
  /// Opens the temporary file that another rank has made. is_open() is false
  /// where this rank sees no such file, or another one.
  PartOfNewFile(std::filesystem::path path,
                const std::filesystem::path& temporary,
                const std::string& mark);

  bool is_open() const { return file_.is_open(); }
  void write(std::int64_t place, const void* data, std::int64_t bytes) const;
  void write(std::int64_t place, std::span<const OpenFile::Part> parts) const;
  void finish(Durable durable);

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

/// Makes a folder's entries survive that the machine stops.
void sync_folder(const std::filesystem::path& folder, const std::string& what);

}  // namespace kzero::detail
