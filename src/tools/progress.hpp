// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kzero::tools {

/// A bar on the terminal that standard error is, while work takes long; nothing
/// elsewhere. Its end takes it away.
class Progress {
 public:
  Progress(std::string what, std::int64_t bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::int64_t bytes);

 private:
  void draw();

  std::string what_;
  std::int64_t bytes_;
  std::int64_t done_ = 0;
  bool on_terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace kzero::tools
