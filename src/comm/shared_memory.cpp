// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/shared_memory.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <kzero/error.hpp>
#include <utility>

#include "comm/aligned_memory.hpp"
#include "comm/huge_pages.hpp"
#include "core/hash.hpp"
#include "core/message.hpp"

#ifdef __linux__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#endif

namespace kzero::detail {

SharedMemory::~SharedMemory() {
#ifdef __linux__
  if (data_ != nullptr) (void)munmap(data_, static_cast<std::size_t>(bytes_));
#endif
  close();
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      file_(std::exchange(other.file_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  SharedMemory mine(std::move(other));
  std::swap(data_, mine.data_);
  std::swap(bytes_, mine.bytes_);
  std::swap(file_, mine.file_);
  std::swap(descriptor_, mine.descriptor_);
  return *this;
}

void SharedMemory::leak() noexcept {
  detail::leak(std::exchange(data_, nullptr));
  descriptor_ = -1;
}

#ifdef __linux__

namespace {

[[noreturn]] void fail(const char* what, std::int64_t bytes) {
  const int code = errno;
  throw Error(concat(
      "no memory for a communication buffer of ", bytes, " bytes (", what,
      " failed: ", std::strerror(code),
      "): use more ranks, smaller buckets or pieces, raise the limit (ulimit "
      "-a, memory of the job) or choose backend mpi"));
}

/// Whole huge pages from one on.
std::int64_t whole_pages(std::int64_t bytes) {
  const std::int64_t page =
      bytes >= huge_page ? huge_page : sysconf(_SC_PAGESIZE);
  return bytes < 1 ? page : (bytes + page - 1) / page * page;
}

/// A place for a mapping that begins where a huge page can, so that those of
/// the file are used as such; null where there is none.
void* reserve_place(std::size_t size) {
  constexpr auto step = static_cast<std::size_t>(huge_page);
  void* const room = mmap(nullptr, size + step, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(room);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(room) % step;
  const std::size_t before = (step - past) % step;
  if (before > 0) (void)munmap(begin, before);
  if (before < step) (void)munmap(begin + before + size, step - before);
  return begin + before;
}

void* map_file(std::size_t size, int protection, int descriptor) {
  void* const place = size >= static_cast<std::size_t>(huge_page)
                          ? reserve_place(size)
                          : nullptr;
  void* const data =
      mmap(place, size, protection,
           MAP_SHARED | (place == nullptr ? 0 : MAP_FIXED), descriptor, 0);
  if (data == MAP_FAILED && place != nullptr) {
    const int code = errno;
    (void)munmap(place, size);
    errno = code;
  }
  return data;
}

}  // namespace

SharedMemory SharedMemory::create(std::int64_t bytes) {
  SharedMemory memory;
  const std::int64_t wanted = bytes;
  bytes = whole_pages(bytes);
  // To be told of the limit, and not to be ended by it.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(bytes) > limit.rlim_cur) {
    errno = EFBIG;
    fail("its file", wanted);
  }
  // Pages of a file are not asked for before they are touched, which then ends
  // the process where there are none: ask for as much that would be refused.
  const auto size = static_cast<std::size_t>(bytes);
  void* const probe = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) fail("mmap", wanted);
  (void)munmap(probe, size);
  memory.descriptor_ = memfd_create("kzero", MFD_CLOEXEC);
  if (memory.descriptor_ < 0) fail("memfd_create", wanted);
  if (ftruncate(memory.descriptor_, bytes) != 0) fail("ftruncate", wanted);
  memory.map(memory.descriptor_, bytes, wanted, Access::write);
  return memory;
}

SharedMemory SharedMemory::open(std::int64_t process, const Handle& handle,
                                Access access) {
  const std::string path = concat("/proc/", process, "/fd/", handle.descriptor);
  const int own = ::open(
      path.c_str(), (access == Access::write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (own < 0) fail(path.c_str(), handle.bytes);
  SharedMemory memory;
  try {
    memory.map(own, handle.bytes, handle.bytes, access);
    // The number may be that of another process here.
    if (memory.file_ != handle.file)
      throw Error(concat(path, " is not the memory of the process ", process,
                         ": mount /proc for the processes of this job"));
  } catch (...) {
    (void)::close(own);
    throw;
  }
  (void)::close(own);
  return memory;
}

void SharedMemory::map(int descriptor, std::int64_t bytes, std::int64_t wanted,
                       Access access) {
  // What lies behind the end of a file cannot be read.
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || status.st_size < bytes) {
    errno = EINVAL;
    fail("its size", wanted);
  }
  const int protection =
      access == Access::write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const data =
      map_file(static_cast<std::size_t>(bytes), protection, descriptor);
  if (data == MAP_FAILED) fail("mmap", wanted);
  data_ = static_cast<std::byte*>(data);
  bytes_ = bytes;
  file_ = status.st_ino;
  ask_for_huge_pages(data, bytes);
}

void SharedMemory::close() noexcept {
  if (descriptor_ >= 0) (void)::close(std::exchange(descriptor_, -1));
}

std::string shared_memory_problem() {
  for (const auto& [resource, name] :
       {std::pair{RLIMIT_AS, "ulimit -v"}, {RLIMIT_FSIZE, "ulimit -f"}}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      return concat(name, " limits it");
  }
  return {};
}

std::uint64_t shared_memory_place() {
  std::array<char, 256> host{};
  (void)gethostname(host.data(), host.size() - 1);
  std::uint64_t place = hash(host.data(), host.size());
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  place = hash(boot.data(), boot.size(), place);
  struct stat processes {};
  if (stat("/proc/self/ns/pid", &processes) == 0)
    place = hash(&processes.st_ino, sizeof processes.st_ino, place);
  return place;
}

// /proc may be that of other processes' numbers than getpid() tells.
std::int64_t process_id() {
  std::array<char, 32> text{};
  if (readlink("/proc/self", text.data(), text.size() - 1) > 0)
    return std::strtoll(text.data(), nullptr, 10);
  return getpid();
}

#else

namespace {

constexpr const char* not_here = "this system has no memfd_create";

}  // namespace

SharedMemory SharedMemory::create(std::int64_t) { throw Error(not_here); }

SharedMemory SharedMemory::open(std::int64_t, const Handle&, Access) {
  throw Error(not_here);
}

void SharedMemory::close() noexcept {}

std::string shared_memory_problem() { return not_here; }

std::uint64_t shared_memory_place() { return 0; }

std::int64_t process_id() { return 0; }

#endif

}  // namespace kzero::detail
