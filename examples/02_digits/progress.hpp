// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the run says while it goes on. Rank 0 only.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "options.hpp"

namespace digits {

struct EpochSummary {
  std::int64_t epoch = 0;  // epochs done
  double loss = 0.0;       // mean over the epoch
  double accuracy = 0.0;   // held-out
  double gradient_norm = 0.0;
  double learning_rate = 0.0;
  double loss_scale = 1.0;   // of the last step
  std::int64_t skipped = 0;  // steps, over the whole run
};

/// On a terminal one line that changes; elsewhere a line every tenth epoch.
class Progress {
 public:
  Progress(int rank, const Options& options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const EpochSummary& summary);

 private:
  bool active_;
  bool terminal_;
  bool line_open_ = false;
  std::int64_t epochs_;
};

/// One JSON object a line and epoch.
class Metrics {
 public:
  enum class Mode { replace, append };

  /// Empty path: nothing is written. Throws std::runtime_error when the file
  /// cannot be opened; so does write() when it cannot be written.
  void open(const std::filesystem::path& path, Mode mode);
  void write(const EpochSummary& summary);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace digits
