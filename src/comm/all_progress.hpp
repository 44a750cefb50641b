// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What goes on in this process while one of its communicators waits: others
// may need this rank for something that the awaited one needs first.
#pragma once

namespace kzero::detail {

/// Something with work that others wait for.
class Progressing {
 public:
  Progressing(const Progressing&) = delete;
  Progressing& operator=(const Progressing&) = delete;

  /// Does what can be done without a wait, unless another thread is at it.
  virtual void try_to_go_on() noexcept = 0;

 protected:
  Progressing() = default;
  ~Progressing() = default;

  /// From now on, and no longer. By the class that is destroyed first.
  void enlist();
  void dismiss() noexcept;
};

/// Called in every wait for other ranks, between two looks.
void let_all_go_on() noexcept;

}  // namespace kzero::detail
