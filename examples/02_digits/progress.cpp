// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "progress.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <ostream>
#include <stdexcept>

namespace digits {
namespace {

/// JSON knows no NaN and no infinity.
struct Number {
  double value;
  friend std::ostream& operator<<(std::ostream& out, Number number) {
    return std::isfinite(number.value) ? out << number.value : out << "null";
  }
};

}  // namespace

// A launcher puts a pipe between rank 0 and the terminal: then only the user
// knows.
Progress::Progress(int rank, const Options& options)
    : active_(rank == 0),
      terminal_(options.progress || ::isatty(STDOUT_FILENO) == 1),
      epochs_(options.epochs) {}

Progress::~Progress() {
  if (line_open_) std::puts("");
}

void Progress::show(const EpochSummary& summary) {
  if (!active_) return;
  const bool last = summary.epoch == epochs_;
  if (!terminal_ && summary.epoch % 10 != 0 && !last) return;
  std::printf("%sepoch %3lld of %lld  loss %.4f  held-out accuracy %.3f%s",
              terminal_ ? "\r" : "", static_cast<long long>(summary.epoch),
              static_cast<long long>(epochs_), summary.loss, summary.accuracy,
              terminal_ ? "" : "\n");
  std::fflush(stdout);
  line_open_ = terminal_;
}

void Metrics::open(const std::filesystem::path& path, Mode mode) {
  path_ = path;
  start_ = std::chrono::steady_clock::now();
  if (path.empty()) return;
  file_.open(path, mode == Mode::append ? std::ios::app : std::ios::trunc);
  if (!file_) {
    throw std::runtime_error("metrics file " + path.string() +
                             " cannot be opened for writing");
  }
  file_.precision(9);
}

void Metrics::write(const EpochSummary& summary) {
  if (path_.empty()) return;
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start_;
  file_ << "{\"epoch\": " << summary.epoch
        << ", \"loss\": " << Number{summary.loss}
        << ", \"held_out_accuracy\": " << Number{summary.accuracy}
        << ", \"gradient_norm\": " << Number{summary.gradient_norm}
        << ", \"learning_rate\": " << Number{summary.learning_rate}
        << ", \"loss_scale\": " << summary.loss_scale
        << ", \"skipped\": " << summary.skipped
        << ", \"seconds\": " << Number{seconds.count()} << "}" << std::endl;
  if (!file_) {
    throw std::runtime_error("metrics file " + path_.string() +
                             " cannot be written");
  }
}

}  // namespace digits
