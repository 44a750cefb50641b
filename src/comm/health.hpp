// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Whether a communicator can still be used. Shared with the memory that it
// handed out and with its operations, which may outlive it.
#pragma once

#include <atomic>
#include <kzero/communicator.hpp>
#include <string>
#include <string_view>

namespace kzero::detail {

class Health {
 public:
  bool broken() const noexcept { return broken_; }

  /// From now on require() throws. The first reason is the one that is kept.
  void break_off(std::string_view why) noexcept;
  void break_off(const Subject& subject, std::string_view why) noexcept;

  /// Throws CommunicationError with the reason when broken.
  void require(const Subject& refused) const;

 private:
  std::atomic<bool> broken_ = false;  // memory may be freed by another thread
  std::string why_;
};

/// "reduce of bucket 2", or the operation alone when it has no bucket.
std::string name_of(const Subject& subject);

/// Why a ticket that is dropped before its end breaks the communicator.
inline constexpr std::string_view dropped =
    "dropped before its end, peers may still write";

}  // namespace kzero::detail
