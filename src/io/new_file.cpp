// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/new_file.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <kzero/error.hpp>
#include <limits>
#include <random>
#include <string_view>
#include <system_error>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

constexpr int attempts = 16;
constexpr std::size_t longest_name = 255;
constexpr std::string_view unfinished = "kzero unfinished ";

std::string random_digits() {
  std::random_device device;
  std::string text;
  for (int i = 0; i < 16; ++i) text += "0123456789abcdef"[device() % 16];
  return text;
}

/// Sets bytes aside without changing the file's size. EOPNOTSUPP where that
/// cannot be done.
int set_aside([[maybe_unused]] int descriptor,
              [[maybe_unused]] std::int64_t bytes) noexcept {
#if defined(__linux__)
  // Where signals come often, some file systems begin anew each time.
  int result = -1;
  for (int i = 0; i < attempts && result != 0; ++i) {
    result = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, bytes);
    if (result != 0 && errno != EINTR) return errno;
  }
  return result == 0 ? 0 : EOPNOTSUPP;
#else
  return EOPNOTSUPP;
#endif
}

/// What the folder's file system has left, or a number that always suffices.
std::int64_t free_bytes(int descriptor) noexcept {
  constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();
  struct statvfs status = {};
  if (fstatvfs(descriptor, &status) != 0 || status.f_blocks == 0)
    return unknown;
  const auto blocks = static_cast<std::int64_t>(status.f_bavail);
  const auto size = static_cast<std::int64_t>(status.f_frsize);
  return size == 0 || blocks > unknown / size ? unknown : blocks * size;
}

void require(const OpenFile::Outcome& outcome,
             const std::filesystem::path& path, std::int64_t reserved) {
  if (outcome.error == 0) return;
  std::string what = concat("writing stopped at byte ", outcome.place);
  if (reserved > 0) what += concat(" of ", reserved);
  throw_not_written(path, outcome.error, what);
}

void finish_file(OpenFile& file, const std::filesystem::path& path,
                 Durable durable) {
  int error = durable == Durable::yes ? file.sync() : 0;
  if (error != 0)
    throw_not_written(path, error, "the file could not be flushed to disk");
  error = file.close();
  if (error != 0)
    throw_not_written(path, error, "the file could not be closed");
}

}  // namespace

void throw_not_written(const std::filesystem::path& path, int error,
                       const std::string& what) {
  std::string reason = what;
  if (error != 0) reason = concat(error_text(error), ": ", what);
  throw CheckpointError(concat("cannot write the checkpoint ",
                               detail::quoted(path.string()), " (", reason,
                               "); what stood there is untouched"));
}

NewFile::NewFile(const std::filesystem::path& path) : path_(path) {
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..")
    throw_not_written(path, 0, "the path names no file: give folder and name");
  // The caller may change to another folder before the file takes its name.
  path_ = std::filesystem::absolute(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored))
    throw_not_written(path_, EISDIR, "the path names a folder");
  if (name.size() > longest_name)
    throw_not_written(path_, ENAMETOOLONG, "the name is too long");

  const std::filesystem::path folder = path_.parent_path();
  int error = 0;
  for (int i = 0; i < attempts && !file_.is_open(); ++i) {
    const std::string digits = random_digits();
    const std::string suffix = concat(".", digits, ".tmp");
    temporary_ =
        folder / (name.substr(0, longest_name - suffix.size()) + suffix);
    mark_ = concat(unfinished, digits);
    file_ = OpenFile(temporary_, O_WRONLY | O_CREAT | O_EXCL);
    error = errno;
    if (!file_.is_open() && error != EEXIST) break;
  }
  if (!file_.is_open()) {
    temporary_.clear();
    throw_not_written(path_, error,
                      concat("no file can be created in the folder ",
                             detail::quoted(folder.string()),
                             error == ENOENT ? ", which must exist" : ""));
  }
  try {
    write(0, mark_.data(), std::ssize(mark_));
  } catch (...) {
    static_cast<void>(unlink(temporary_.c_str()));
    throw;
  }
}

NewFile::~NewFile() {
  if (!temporary_.empty()) static_cast<void>(unlink(temporary_.c_str()));
}

void NewFile::reserve(std::int64_t bytes) {
  reserved_ = bytes;
  int error = file_.resize(bytes);
  if (error != 0)
    throw_not_written(path_, error, concat("it takes ", bytes, " bytes"));
  error = set_aside(file_.descriptor(), bytes);
  if (error != 0) {
    const std::int64_t available = free_bytes(file_.descriptor());
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    if (full || bytes > available)
      throw_not_written(
          path_, full ? error : ENOSPC,
          concat("it takes ", bytes, " bytes, ", available, " are free"));
  }
}

void NewFile::write(std::int64_t place, const void* data, std::int64_t bytes) {
  require(file_.write(place, data, bytes), path_, reserved_);
}

void NewFile::finish(Durable durable) { finish_file(file_, path_, durable); }

void NewFile::take_name(Durable durable) {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    throw_not_written(
        path_, errno,
        concat("the complete file ", detail::quoted(temporary_.string()),
               " could not take the name"));
  temporary_.clear();
  if (durable == Durable::yes)
    sync_folder(path_.parent_path(),
                concat("the checkpoint ", detail::quoted(path_.string()),
                       " is complete"));
}

PartOfNewFile::PartOfNewFile(std::filesystem::path path,
                             const std::filesystem::path& temporary,
                             const std::string& mark)
    : path_(std::move(path)) {
  std::string found(mark.size(), '\0');
  const OpenFile seen(temporary, O_RDONLY);
  // Written through a descriptor that cannot read: a client of a network file
  // system then sends these bytes, and not whole pages, of which another rank
  // may write a part.
  if (seen.is_open() &&
      seen.read(0, found.data(), std::ssize(found)).error == 0 && found == mark)
    file_ = OpenFile(temporary, O_WRONLY);
}

void PartOfNewFile::write(std::int64_t place, const void* data,
                          std::int64_t bytes) const {
  require(file_.write(place, data, bytes), path_, 0);
}

void PartOfNewFile::write(std::int64_t place,
                          std::span<const OpenFile::Part> parts) const {
  require(file_.write(place, parts), path_, 0);
}

void PartOfNewFile::finish(Durable durable) {
  finish_file(file_, path_, durable);
}

void sync_folder(const std::filesystem::path& folder, const std::string& what) {
  const OpenFile opened(folder, O_RDONLY | O_DIRECTORY);
  if (!opened.is_open()) return;  // one that may be written, but not read
  const int error = opened.sync();
  // Some file systems cannot flush a folder, and need not.
  if (error != 0 && error != EINVAL && error != ENOTSUP && error != EBADF)
    throw CheckpointError(concat(
        what, ", but its folder could not be flushed to disk (",
        error_text(error), "): its name may be lost if the machine stops now"));
}

}  // namespace kzero::detail
