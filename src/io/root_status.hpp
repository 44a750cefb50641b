// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How all ranks learn of an error that the root has met in its work on a file,
// or on a state in its memory.
#pragma once

#include <functional>
#include <kzero/communicator.hpp>
#include <optional>
#include <string>

namespace kzero::detail {

/// What the root's work has come to so far.
class RootStatus {
 public:
  /// operation: as in Subject.
  RootStatus(Communicator& communicator, const char* operation, int root = 0)
      : communicator_(communicator), operation_(operation), root_(root) {}

  int root() const { return root_; }
  bool is_root() const { return communicator_.rank() == root_; }
  const char* operation() const { return operation_; }

  /// Local. On the root, and unless something has failed before, calls f, which
  /// does not communicate, and keeps the message of what it throws. Returns
  /// whether the root can go on; true elsewhere.
  bool attempt(const std::function<void()>& f);

  /// Collective. Throws CheckpointError on every rank when attempt() has
  /// failed on the root, with note behind the message.
  void share(const char* note = "");

 private:
  Communicator& communicator_;
  const char* operation_;
  int root_;
  std::optional<std::string> error_;
};

}  // namespace kzero::detail
