// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
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

std::string unique_suffix() {
  std::random_device device;
  std::string text = ".";
  for (int i = 0; i < 16; ++i) text += "0123456789abcdef"[device() % 16];
  return text + ".tmp";
}

/// Returns 0, or errno. Signals interrupt neither of them.
template <class F>
int error_of(F&& call) noexcept {
  int result = 0;
  do {
    result = call();
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

/// Sets bytes aside without changing the file's size. EOPNOTSUPP where that
/// cannot be done.
int set_aside([[maybe_unused]] int descriptor,
              [[maybe_unused]] std::int64_t bytes) noexcept {
#if defined(__linux__)
  return error_of(
      [&] { return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, bytes); });
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

}  // namespace

std::string error_text(int error) {
  return std::generic_category().message(error);
}

NewFile::NewFile(const std::filesystem::path& path) : path_(path) {
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..")
    fail(0, "the path names no file: give folder and name");
  // The caller may change to another folder before the file takes its name.
  path_ = std::filesystem::absolute(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored))
    fail(EISDIR, "the path names a folder");
  if (name.size() > longest_name) fail(ENAMETOOLONG, "the name is too long");

  const std::filesystem::path folder = path_.parent_path();
  int error = 0;
  for (int i = 0; i < attempts; ++i) {
    const std::string suffix = unique_suffix();
    temporary_ =
        folder / (name.substr(0, longest_name - suffix.size()) + suffix);
    descriptor_ =
        open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return;
    error = errno;
    if (error != EEXIST && error != EINTR) break;
  }
  fail(error, concat("no file can be created in the folder ",
                     detail::quoted(folder.string()),
                     error == ENOENT ? ", which must exist" : ""));
}

NewFile::~NewFile() {
  close();
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::write(std::int64_t offset, const void* data, std::size_t bytes,
                    Content content) noexcept {
  const auto* bytes_left = static_cast<const char*>(data);
  size_ = std::max(size_, offset + static_cast<std::int64_t>(bytes));
  std::size_t done = 0;
  while (error_ == 0 && done < bytes) {
    const std::int64_t place = offset + static_cast<std::int64_t>(done);
    const ssize_t written =
        pwrite(descriptor_, bytes_left + done, bytes - done, place);
    if (written > 0)
      done += static_cast<std::size_t>(written);
    else if (written == 0 || errno != EINTR)
      keep_failure(written == 0 ? ENOSPC : errno, place);
  }
  if (error_ == 0 || content == Content::data) return;
  try {
    after_failure_.emplace_back(
        offset, std::vector<char>(bytes_left, bytes_left + bytes));
  } catch (...) {  // out of memory too: HDF5 has to live with what it reads
  }
}

bool NewFile::read(std::int64_t offset, void* data,
                   std::size_t bytes) const noexcept {
  auto* out = static_cast<char*>(data);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(descriptor_, out + done, bytes - done,
                              offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  std::memset(out + done, 0, bytes - done);
  for (const auto& [place, kept] : after_failure_) {
    const std::int64_t begin = std::max(offset, place);
    const std::int64_t end =
        std::min(offset + static_cast<std::int64_t>(bytes),
                 place + static_cast<std::int64_t>(kept.size()));
    if (begin < end)
      std::memcpy(out + (begin - offset), kept.data() + (begin - place),
                  static_cast<std::size_t>(end - begin));
  }
  return true;
}

void NewFile::resize(std::int64_t bytes) noexcept {
  size_ = bytes;
  if (error_ != 0) return;
  const int error = error_of([&] { return ftruncate(descriptor_, bytes); });
  if (error != 0) keep_failure(error, bytes);
}

void NewFile::reserve(std::int64_t bytes) {
  reserved_ = bytes;
  const int error = set_aside(descriptor_, bytes);
  if (error == 0) return;
  const std::int64_t available = free_bytes(descriptor_);
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  if (!full && bytes - size_ <= available) return;
  fail(full ? error : ENOSPC,
       concat("it takes ", bytes, " bytes, ", available, " are free"));
}

void NewFile::check() const {
  if (error_ == 0) return;
  std::string what = concat("writing stopped at byte ", error_offset_);
  if (reserved_ > 0) what += concat(" of ", reserved_);
  fail(error_, what);
}

void NewFile::sync() {
  check();
  const int error = error_of([&] { return fsync(descriptor_); });
  if (error != 0) fail(error, "the file could not be flushed to disk");
  // Network file systems report here what they could not write.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    fail(errno, "the file could not be closed");
}

void NewFile::take_name() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(errno,
         concat("the complete file ", detail::quoted(temporary_.string()),
                " could not take the name"));
  temporary_.clear();
  const int folder =
      open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written, but not read
  const int error = error_of([&] { return fsync(folder); });
  ::close(folder);
  // Some file systems cannot flush a folder, and need not.
  if (error != 0 && error != EINVAL && error != ENOTSUP && error != EBADF)
    throw CheckpointError(concat(
        "the checkpoint ", detail::quoted(path_.string()),
        " is complete, but its folder could not be flushed to disk (",
        error_text(error), "): its name may be lost if the machine stops now"));
}

void NewFile::fail(int error, const std::string& what) const {
  std::string reason = what;
  if (error != 0) reason = concat(error_text(error), ": ", what);
  throw CheckpointError(concat("cannot write the checkpoint ",
                               detail::quoted(path_.string()), " (", reason,
                               "); what stood there is untouched"));
}

void NewFile::keep_failure(int error, std::int64_t offset) noexcept {
  error_ = error;
  error_offset_ = offset;
}

void NewFile::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace kzero::detail
