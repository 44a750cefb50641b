// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <kzero/error.hpp>

extern char** environ;

namespace kzero::bench {

namespace {

constexpr int patience_ms = 180'000;

// The peer's processes are no ranks of this job.
std::vector<std::string> environment_of_peer() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("PMI", 0) != 0 && text.rfind("MPI", 0) != 0)
      kept.push_back(text);
  }
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Peer::Peer(const std::vector<std::string>& command) {
  signal(SIGPIPE, SIG_IGN);
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
    throw Error("no pipe to a peer");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = environment_of_peer();
  const int failed =
      posix_spawnp(&process_, arguments.at(0).c_str(), &actions, nullptr,
                   pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
  if (failed != 0) {
    process_ = -1;
    throw Error("cannot start " + command.at(0));
  }
  const std::string first = line();
  if (first.rfind("ready ", 0) != 0)
    throw Error("a peer (" + command.back() + ") is not ready: " + first);
  name_ = first.substr(6);
}

Peer::~Peer() {
  if (to_ != nullptr) std::fclose(to_);  // its end of input
  if (from_ != nullptr) std::fclose(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

std::string Peer::line() {
  pollfd ready{fileno(from_), POLLIN, 0};
  if (poll(&ready, 1, patience_ms) <= 0)
    throw Error("a peer says nothing for " +
                std::to_string(patience_ms / 1000) + " s");
  char text[256] = {};
  if (std::fgets(text, sizeof text, from_) == nullptr)
    throw Error("a peer has ended: its messages stand above");
  std::string result = text;
  while (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

std::string Peer::ask(const std::string& request) {
  std::fputs((request + '\n').c_str(), to_);
  std::fflush(to_);
  return line();
}

void Peer::set_up(const std::string& what) {
  const std::string answer = ask("set-up " + what);
  if (answer != "ready") throw Error("a peer is not ready: " + answer);
}

double Peer::round() {
  const std::string answer = ask("round");
  const double seconds = std::strtod(answer.c_str(), nullptr);
  if (!(seconds > 0)) throw Error("a peer answers no time: " + answer);
  return seconds;
}

}  // namespace kzero::bench
