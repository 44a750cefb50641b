// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/zip_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "io/new_file.hpp"
#include "io/open_file.hpp"

namespace kzero::tools {

namespace {

using detail::concat;

/// What deflate makes of one byte, at most (RFC 1951: 258 bytes of 2 bits).
constexpr std::uint64_t most_from_a_byte = 1032;
/// Members have no time of their own: equal content gives equal bytes.
constexpr std::time_t time_of_members = 315619200;  // 1980-01-02
/// A file without members, which libzip does not write.
constexpr std::string_view empty_file(
    "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);

std::string text_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

}  // namespace

ZipFile::ZipFile(const std::filesystem::path& path) {
  // libzip would wait for what comes out of a pipe.
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) &&
      !std::filesystem::is_regular_file(path, ignored))
    throw CheckpointError("it is no file of bytes");
  int error = 0;
  archive_ = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error);
  if (archive_ == nullptr) throw CheckpointError(text_of(error));
}

ZipFile::~ZipFile() { zip_discard(archive_); }

std::int64_t ZipFile::size() const { return zip_get_num_entries(archive_, 0); }

ZipFile::Member ZipFile::member(std::int64_t index) const {
  zip_stat_t status;
  zip_stat_init(&status);
  constexpr zip_uint64_t wanted =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive_, static_cast<zip_uint64_t>(index), 0, &status) !=
          0 ||
      (status.valid & wanted) != wanted)
    throw CheckpointError(concat("member ", index, " cannot be told"));
  const std::string name = status.name;
  if (status.comp_method != ZIP_CM_STORE &&
      status.comp_method != ZIP_CM_DEFLATE)
    throw CheckpointError(
        concat(detail::quoted(name), " is packed in a way that NumPy has not"));
  const std::uint64_t most = status.comp_method == ZIP_CM_STORE
                                 ? status.comp_size
                                 : status.comp_size * most_from_a_byte;
  if (status.comp_size >> 50 != 0 || status.size > most)
    throw CheckpointError(concat(detail::quoted(name), " would have ",
                                 status.size, " bytes, of ", status.comp_size,
                                 " packed ones"));
  return {name, static_cast<std::int64_t>(status.size)};
}

ZipFile::Reader::Reader(const ZipFile& file, std::int64_t index)
    : member_(
          zip_fopen_index(file.archive_, static_cast<zip_uint64_t>(index), 0)) {
  if (member_ == nullptr) throw CheckpointError(zip_strerror(file.archive_));
}

ZipFile::Reader::~Reader() { zip_fclose(member_); }

void ZipFile::Reader::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const zip_int64_t count = zip_fread(member_, bytes.data(), bytes.size());
    if (count < 0) throw CheckpointError(zip_file_strerror(member_));
    if (count == 0) throw CheckpointError("a member of it is cut");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void ZipFile::Reader::finish() {
  std::byte one{};
  const zip_int64_t count = zip_fread(member_, &one, 1);
  if (count < 0) throw CheckpointError(zip_file_strerror(member_));
  if (count > 0) throw CheckpointError("a member of it goes on behind its end");
}

struct NewZipFile::Source {
  NewZipFile* file = nullptr;
  std::int64_t bytes = 0;
  std::function<Give()> start;
  Give give;
  std::int64_t left = 0;
};

NewZipFile::NewZipFile(const std::filesystem::path& path) : path_(path) {
  int error = 0;
  archive_ = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (archive_ == nullptr) refuse(text_of(error));
}

NewZipFile::~NewZipFile() {
  if (archive_ != nullptr) zip_discard(archive_);
}

void NewZipFile::refuse(const std::string& why) const {
  detail::throw_not_written(path_, 0, why);
}

zip_int64_t NewZipFile::answer(void* source, void* data, zip_uint64_t bytes,
                               zip_source_cmd_t command) {
  auto& member = *static_cast<Source*>(source);
  try {
    switch (command) {
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
      case ZIP_SOURCE_OPEN:
        member.give = member.start();
        member.left = member.bytes;
        return 0;
      case ZIP_SOURCE_READ: {
        const auto count =
            std::min(bytes, static_cast<zip_uint64_t>(member.left));
        if (count > 0) member.give({static_cast<std::byte*>(data), count});
        member.left -= static_cast<std::int64_t>(count);
        return static_cast<zip_int64_t>(count);
      }
      case ZIP_SOURCE_CLOSE:
        member.give = nullptr;
        return 0;
      case ZIP_SOURCE_STAT: {
        auto& status = *static_cast<zip_stat_t*>(data);
        zip_stat_init(&status);
        status.valid = ZIP_STAT_SIZE;
        status.size = static_cast<zip_uint64_t>(member.bytes);
        return sizeof status;
      }
      case ZIP_SOURCE_ERROR: {
        const std::array<int, 2> codes = {ZIP_ER_READ, EIO};
        std::memcpy(data, codes.data(), sizeof codes);
        return sizeof codes;
      }
      case ZIP_SOURCE_FREE:
        delete &member;
        return 0;
      default:
        return -1;
    }
  } catch (...) {
    member.file->problem_ = std::current_exception();
    return -1;
  }
}

void NewZipFile::add(const std::string& name, std::int64_t bytes,
                     std::function<Give()> start) {
  if (name.find('\0') != name.npos)
    refuse("no member can have a name with a zero byte");
  auto member = std::make_unique<Source>();
  member->file = this;
  member->bytes = bytes;
  member->start = std::move(start);
  zip_source_t* const source =
      zip_source_function(archive_, &NewZipFile::answer, member.get());
  if (source == nullptr) refuse(zip_strerror(archive_));
  static_cast<void>(member.release());
  const zip_int64_t index =
      zip_file_add(archive_, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    const std::string why = zip_strerror(archive_);
    zip_source_free(source);
    refuse(concat(detail::quoted(name), ": ", why));
  }
  if (zip_set_file_compression(archive_, static_cast<zip_uint64_t>(index),
                               ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_mtime(archive_, static_cast<zip_uint64_t>(index),
                         time_of_members, 0) != 0)
    refuse(zip_strerror(archive_));
}

void NewZipFile::commit() {
  if (zip_get_num_entries(archive_, 0) == 0) {
    detail::NewFile file(path_);
    file.reserve(std::ssize(empty_file));
    file.write(0, empty_file.data(), std::ssize(empty_file));
    file.finish(detail::Durable::yes);
    return file.take_name(detail::Durable::yes);
  }
  if (zip_close(archive_) != 0) {
    if (problem_) std::rethrow_exception(problem_);
    refuse(zip_strerror(archive_));
  }
  archive_ = nullptr;
  const int error = detail::OpenFile(path_, O_RDONLY).sync();
  if (error != 0)
    throw CheckpointError(
        concat("the file ", detail::quoted(path_.string()),
               " is complete, but it could not be flushed to disk (",
               detail::error_text(error), ")"));
  detail::sync_folder(
      std::filesystem::absolute(path_).parent_path(),
      concat("the file ", detail::quoted(path_.string()), " is complete"));
}

}  // namespace kzero::tools
