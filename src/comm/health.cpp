// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/health.hpp"

#include <kzero/error.hpp>

#include "core/message.hpp"

namespace kzero::detail {

std::shared_ptr<Health> Health::duplicate() const {
  auto health = std::make_shared<Health>();
  health->any_broken_ = any_broken_;
  return health;
}

void Health::break_off(std::string_view why) noexcept {
  if (broken_) return;
  try {
    why_ = why;
  } catch (...) {
    // Without memory for the reason: unusable all the same.
  }
  broken_ = true;
  *any_broken_ = true;
}

void Health::break_off(const Subject& subject, std::string_view why) noexcept {
  if (broken_) return;
  try {
    break_off(concat(name_of(subject), ": ", why));
  } catch (...) {
    break_off(why);
  }
}

void Health::require(const Subject& refused) const {
  if (!broken_) return;
  throw CommunicationError(concat(
      name_of(refused),
      " refused (the communicator is unusable after an earlier error: ", why_,
      "): make a new communicator or end the program"));
}

std::string name_of(const Subject& subject) {
  const std::string_view operation =
      subject.operation != nullptr ? subject.operation : "collective";
  if (subject.bucket < 0) return std::string(operation);
  return concat(operation, " of bucket ", subject.bucket);
}

}  // namespace kzero::detail
