// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Whether a communicator can still be used. Shared with the memory that it
// handed out and with its operations, which may outlive it.
#pragma once

#include <atomic>
#include <kzero/communicator.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace kzero::detail {

class Health {
 public:
  bool broken() const noexcept { return broken_; }

  /// Whether this communicator is broken, or one that uses the same memory.
  bool memory_at_risk() const noexcept { return *any_broken_; }

  /// Of a duplicate, which uses the same memory and breaks by itself.
  std::shared_ptr<Health> duplicate() const;

  /// From now on require() throws. The first reason is the one that is kept.
  void break_off(std::string_view why) noexcept;
  void break_off(const Subject& subject, std::string_view why) noexcept;

  /// Throws CommunicationError with the reason when broken.
  void require(const Subject& refused) const;

 private:
  // Atomic, because memory may be freed by another thread.
  std::atomic<bool> broken_ = false;
  std::shared_ptr<std::atomic<bool>> any_broken_ =
      std::make_shared<std::atomic<bool>>(false);
  std::string why_;
};

/// "reduce of bucket 2", or the operation alone when it has no bucket.
std::string name_of(const Subject& subject);

/// Why a ticket that is dropped before its end breaks the communicator.
inline constexpr std::string_view dropped =
    "dropped before its end, peers may still write";

}  // namespace kzero::detail
