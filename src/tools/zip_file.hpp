// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Files in the format zip, by libzip.
#pragma once

#include <zip.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace kzero::tools {

/// An existing file. All members throw CheckpointError.
class ZipFile {
 public:
  explicit ZipFile(const std::filesystem::path& path);
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  struct Member {
    std::string name;
    std::int64_t bytes = 0;  // when it is unpacked
  };
  std::int64_t size() const;
  /// Throws for one that NumPy would not have packed so, or that would have
  /// more bytes than can be packed into what is there.
  Member member(std::int64_t index) const;

  /// Reads a member from the beginning to the end.
  class Reader {
   public:
    Reader(const ZipFile& file, std::int64_t index);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void read(std::span<std::byte> bytes);
    /// Behind the last byte: throws when the checksum is another one.
    void finish();

   private:
    zip_file_t* member_;
  };

 private:
  zip_t* archive_ = nullptr;
};

/// A file to be. What stood at path is untouched until commit() has returned.
/// All members throw CheckpointError.
class NewZipFile {
 public:
  /// Gives the next bytes of a member.
  using Give = std::function<void(std::span<std::byte>)>;

  explicit NewZipFile(const std::filesystem::path& path);
  ~NewZipFile();
  NewZipFile(const NewZipFile&) = delete;
  NewZipFile& operator=(const NewZipFile&) = delete;

  /// Not packed. start is called when the member's turn has come, in commit().
  void add(const std::string& name, std::int64_t bytes,
           std::function<Give()> start);
  void commit();

 private:
  struct Source;
  static zip_int64_t answer(void* source, void* data, zip_uint64_t bytes,
                            zip_source_cmd_t command);
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path path_;
  zip_t* archive_ = nullptr;
  std::exception_ptr problem_;
};

}  // namespace kzero::tools
