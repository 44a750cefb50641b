// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How all ranks learn of an error that rank 0 has met in its work on a file.
#pragma once

#include <functional>
#include <kzero/communicator.hpp>
#include <optional>
#include <string>

namespace kzero::detail {

/// What rank 0's work has come to so far.
class RootStatus {
 public:
  RootStatus(Communicator& communicator, Subject subject)
      : communicator_(communicator), subject_(subject) {}

  /// Local. On rank 0, and unless something has failed before, calls f, which
  /// does not communicate, and keeps the message of what it throws. Returns
  /// whether rank 0 can go on; true elsewhere.
  bool attempt(const std::function<void()>& f);

  /// Collective. Throws CheckpointError on every rank when attempt() has
  /// failed on rank 0, with note behind the message.
  void share(const char* note = "");

 private:
  Communicator& communicator_;
  Subject subject_;
  std::optional<std::string> error_;
};

}  // namespace kzero::detail
