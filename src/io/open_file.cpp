// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/open_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

namespace kzero::detail {

namespace {

// Some systems take no more at a time, and a signal is not kept waiting.
constexpr std::int64_t largest_call = std::int64_t{1} << 29;
constexpr int new_file_mode = 0666;

template <class F>
int error_of(F&& call) noexcept {
  int result = 0;
  do {
    result = call();
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

/// call(bytes done, bytes to do): as read(2) and write(2).
template <class F>
OpenFile::Outcome transfer(std::int64_t place, std::int64_t bytes, int at_none,
                           F&& call) noexcept {
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t moved = call(done, std::min(bytes - done, largest_call));
    if (moved > 0)
      done += moved;
    else if (moved == 0 || errno != EINTR)
      return {moved == 0 ? at_none : errno, place + done};
  }
  return {};
}

/// What is left of the parts behind the bytes that are done.
class PartsLeft {
 public:
  explicit PartsLeft(std::span<const OpenFile::Part> parts) : parts_(parts) {}

  /// Where they lie, and how many they are.
  std::pair<const iovec*, int> at(std::int64_t done) noexcept {
    int count = 0;
    std::int64_t begin = 0;
    for (const OpenFile::Part& part : parts_) {
      const std::int64_t skipped =
          std::clamp(done - begin, std::int64_t{0}, part.bytes);
      begin += part.bytes;
      if (skipped == part.bytes) continue;
      vectors_[static_cast<std::size_t>(count++)] = {
          part.data + skipped, static_cast<std::size_t>(part.bytes - skipped)};
    }
    return {vectors_.data(), count};
  }

  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const OpenFile::Part& part : parts_) sum += part.bytes;
    return sum;
  }

 private:
  std::span<const OpenFile::Part> parts_;
  std::array<iovec, OpenFile::most_parts> vectors_;
};

/// Past it a signal would end the process.
std::int64_t largest_file() noexcept {
  rlimit limit{};
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      limit.rlim_cur > static_cast<rlim_t>(most))
    return most;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

}  // namespace

std::string error_text(int error) {
  return std::generic_category().message(error);
}

OpenFile::OpenFile(const std::filesystem::path& path, int flags) {
  // A pipe that nobody writes to would make it wait; files it does not change.
  flags |= O_CLOEXEC | O_NONBLOCK;
  do {
    descriptor_ = open(path.c_str(), flags, new_file_mode);
  } while (descriptor_ < 0 && errno == EINTR);
}

OpenFile::Outcome OpenFile::write(std::int64_t place, const void* data,
                                  std::int64_t bytes) const noexcept {
  if (bytes > 0 && place + bytes > largest_file()) return {EFBIG, place};
  const auto* const from = static_cast<const char*>(data);
  return transfer(
      place, bytes, ENOSPC, [&](std::int64_t done, std::int64_t count) {
        return pwrite(descriptor_, from + done, static_cast<std::size_t>(count),
                      place + done);
      });
}

OpenFile::Outcome OpenFile::read(std::int64_t place, void* data,
                                 std::int64_t bytes) const noexcept {
  auto* const to = static_cast<char*>(data);
  return transfer(place, bytes, EIO,
                  [&](std::int64_t done, std::int64_t count) {
                    return pread(descriptor_, to + done,
                                 static_cast<std::size_t>(count), place + done);
                  });
}

OpenFile::Outcome OpenFile::write(std::int64_t place,
                                  std::span<const Part> parts) const noexcept {
  PartsLeft left(parts);
  if (place + left.bytes() > largest_file()) return {EFBIG, place};
  return transfer(place, left.bytes(), ENOSPC,
                  [&](std::int64_t done, std::int64_t) {
                    const auto [vectors, count] = left.at(done);
                    return pwritev(descriptor_, vectors, count, place + done);
                  });
}

OpenFile::Outcome OpenFile::read(std::int64_t place,
                                 std::span<const Part> parts) const noexcept {
  PartsLeft left(parts);
  return transfer(place, left.bytes(), EIO,
                  [&](std::int64_t done, std::int64_t) {
                    const auto [vectors, count] = left.at(done);
                    return preadv(descriptor_, vectors, count, place + done);
                  });
}

int OpenFile::sync() const noexcept {
  return error_of([&] { return fsync(descriptor_); });
}

int OpenFile::resize(std::int64_t bytes) const noexcept {
  if (bytes > largest_file()) return EFBIG;
  return error_of([&] { return ftruncate(descriptor_, bytes); });
}

int OpenFile::close() noexcept {
  if (descriptor_ < 0) return 0;
  const int result = ::close(std::exchange(descriptor_, -1));
  return result != 0 && errno != EINTR ? errno : 0;
}

std::int64_t OpenFile::size() const noexcept {
  struct stat status {};
  return fstat(descriptor_, &status) == 0 ? std::int64_t{status.st_size} : -1;
}

}  // namespace kzero::detail
