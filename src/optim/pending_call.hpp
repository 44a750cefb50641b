// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#pragma once

namespace kzero::detail {

/// What the ranks of an optimizer have begun together and end together, some
/// steps later.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  virtual bool is_over() const = 0;
  /// Collective. Ends it if every rank can do so without a wait.
  virtual void advance() = 0;
  /// Collective. Ends it.
  virtual void end() = 0;
};

}  // namespace kzero::detail
