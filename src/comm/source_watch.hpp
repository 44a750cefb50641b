// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Notices that somebody writes to what is being sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <span>

#include "comm/health.hpp"
#include "core/hash.hpp"
#include "core/message.hpp"

namespace kzero::detail {

class SourceWatch {
 public:
  using Bytes = std::span<const std::byte>;

  void begin(Bytes first, Bytes second = {}) {
    parts_ = {first, second};
    hash_ = hash_now();
  }

  /// Throws Error when the bytes are not what they were.
  void end(const Subject& subject, int rank) const {
    if (hash_now() == hash_) return;
    throw Error(concat(name_of(subject), " (on rank ", rank,
                       "): its source was written to while it was being sent: "
                       "leave it alone until the operation has ended"));
  }

 private:
  std::uint64_t hash_now() const {
    std::uint64_t result = 0;
    for (const Bytes& part : parts_) {
      result = hash(part.data(), part.size(), result);
    }
    return result;
  }

  std::array<Bytes, 2> parts_;
  std::uint64_t hash_ = 0;
};

}  // namespace kzero::detail
