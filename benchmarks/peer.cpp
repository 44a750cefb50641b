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

namespace kzero::bench {
namespace {

constexpr int patience_ms = 180'000;

struct Pipe {
  int ends[2] = {-1, -1};

  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw Error("no pipe to a peer program");
  }
};

// The peer's processes are no ranks of this job.
std::vector<std::string> environment_of_peer() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with("PMI") && !text.starts_with("MPI"))
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
  signal(SIGPIPE, SIG_IGN);  // One that has ended is an error like others.
  const Pipe input;
  const Pipe output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = environment_of_peer();
  const int code =
      posix_spawnp(&process_, command.at(0).c_str(), &actions, nullptr,
                   pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(input.ends[0]);
  close(output.ends[1]);
  to_ = fdopen(input.ends[1], "w");
  from_ = fdopen(output.ends[0], "r");
  if (code != 0) {
    process_ = 0;
    description_ = command[0] + " not installed";
    return;
  }
  description_ = command[0];
  for (std::size_t i = 1; i < command.size(); ++i)
    description_ += ' ' + command[i];
  const std::string line = read_line();
  ready_ = line.starts_with("ready ");
  const std::size_t space = line.find(' ');
  description_ = line.substr(space == std::string::npos ? 0 : space + 1);
}

Peer::~Peer() {
  std::fclose(to_);
  std::fclose(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

double Peer::run(const std::string& kind) {
  const std::string line = ask(kind);
  char* end = nullptr;
  const double seconds = std::strtod(line.c_str(), &end);
  if (end == line.c_str() || !(seconds > 0.0))
    throw Error("the peer " + description_ + " answered '" + line + "' to '" +
                kind + "', not seconds");
  return seconds;
}

void Peer::set_up(const std::string& what) {
  const std::string line = ask("set-up " + what);
  if (line != "ready")
    throw Error("the peer " + description_ + " answered '" + line +
                "' to 'set-up " + what + "', not ready");
}

std::string Peer::ask(const std::string& request) {
  std::fprintf(to_, "%s\n", request.c_str());
  std::fflush(to_);
  return read_line();
}

std::string Peer::read_line() {
  pollfd answer{fileno(from_), POLLIN, 0};
  if (poll(&answer, 1, patience_ms) <= 0)
    throw Error("the peer " + description_ + " says nothing");
  std::string line;
  int c = std::fgetc(from_);
  if (c == EOF)
    throw Error("the peer " + description_ +
                " has ended: what it said stands above");
  for (; c != EOF && c != '\n'; c = std::fgetc(from_))
    line += static_cast<char>(c);
  return line;
}

}  // namespace kzero::bench
