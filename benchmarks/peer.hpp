// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Another library's optimizer in a program of its own that waits for its turn:
// its rounds alternate with ours.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace kzero::bench {

/// Starts a program that prints one line, "ready <what it is>" or "missing
/// <what>", and then for each line that it reads one with the seconds of a
/// round of that kind. It ends when its input does.
class Peer {
 public:
  /// Throws Error when it says nothing. Not ready where there is no program of
  /// that name.
  explicit Peer(const std::vector<std::string>& command);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool ready() const { return ready_; }
  /// Its name and version; without them what is missing.
  const std::string& description() const { return description_; }

  /// Throws Error when it does not answer.
  double run(const std::string& kind);

  /// Says what later rounds are of: it answers "ready". Throws Error.
  void set_up(const std::string& what);

 private:
  std::string ask(const std::string& request);
  std::string read_line();

  pid_t process_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  bool ready_ = false;
  std::string description_;
};

}  // namespace kzero::bench
