// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Memory that other processes of this machine can map. It has a descriptor and
// no name, so nothing is left of it when the processes are gone, however they
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kzero::detail {

class SharedMemory {
 public:
  enum class Access { read, write };

  /// Of memory in the process that has created it, for others to open. Plain
  /// numbers: it travels between ranks.
  struct Handle {
    std::int64_t bytes = 0;
    std::uint64_t file = 0;  // which of the system's
    std::int32_t descriptor = -1;
  };

  SharedMemory() = default;
  /// Of zeros, on whole pages. Throws Error.
  static SharedMemory create(std::int64_t bytes);
  /// What a process of the same user has created, which keeps it open until
  /// this has returned. Throws Error.
  static SharedMemory open(std::int64_t process, const Handle& handle,
                           Access access);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  /// Of what was created here.
  Handle handle() const { return {bytes_, file_, descriptor_}; }
  /// Nobody can open it any more.
  void close() noexcept;
  /// Never gives it back.
  void leak() noexcept;

 private:
  /// wanted: what was asked for, for messages.
  void map(int descriptor, std::int64_t bytes, std::int64_t wanted,
           Access access);

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::uint64_t file_ = 0;
  int descriptor_ = -1;  // of what was created here
};

/// Why processes here cannot be expected to share memory, in words; empty when
/// nothing speaks against it.
std::string shared_memory_problem();

/// Stands for the machine and what of it this process sees of others: those
/// with the same number can open one another's memory.
std::uint64_t shared_memory_place();

/// By which other processes of that place find this one.
std::int64_t process_id();

}  // namespace kzero::detail
