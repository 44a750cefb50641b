// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace kzero::tools {

namespace {

constexpr std::chrono::milliseconds patience(500);
constexpr std::chrono::milliseconds interval(100);
constexpr std::int64_t width = 40;

}  // namespace

Progress::Progress(std::string what, std::int64_t bytes)
    : what_(std::move(what)),
      bytes_(std::max<std::int64_t>(bytes, 1)),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      next_(std::chrono::steady_clock::now() + patience) {}

Progress::~Progress() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
}

void Progress::add(std::int64_t bytes) {
  done_ = std::min(done_ + bytes, bytes_);
  if (!on_terminal_ || std::chrono::steady_clock::now() < next_) return;
  next_ = std::chrono::steady_clock::now() + interval;
  draw();
}

void Progress::draw() {
  const auto filled = static_cast<int>(width * done_ / bytes_);
  std::string bar(static_cast<std::size_t>(filled), '#');
  bar.resize(static_cast<std::size_t>(width), '.');
  std::fprintf(stderr, "\r\033[K%s [%s] %3d %%", what_.c_str(), bar.c_str(),
               static_cast<int>(100 * done_ / bytes_));
  drawn_ = true;
}

}  // namespace kzero::tools
