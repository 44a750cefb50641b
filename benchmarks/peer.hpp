// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A benchmark of another library, in processes of its own: it takes a round
// when it is told to, so that rounds alternate with those of this program.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace kzero::bench {

class Peer {
 public:
  /// Starts a command and waits until it says "ready". Throws Error when it
  /// cannot be started or ends.
  explicit Peer(const std::vector<std::string>& command);
  /// Ends it.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// What it says behind "ready": its name and version.
  const std::string& name() const { return name_; }

  /// Says what is to be measured, and waits until it is ready. Throws Error.
  void set_up(const std::string& what);

  /// Lets it take one round; the seconds that it says. Throws Error.
  double round();

 private:
  std::string ask(const std::string& request);
  std::string line();

  std::string name_;
  pid_t process_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace kzero::bench
