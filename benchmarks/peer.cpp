// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "peer.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <kzero/error.hpp>

namespace kzero::bench {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};

  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw Error("no pipe to a peer program");
  }
};

}  // namespace

Peer::Peer(const std::vector<std::string>& command) {
  const Pipe input;
  const Pipe output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int code = posix_spawnp(&process_, arguments[0], &actions, nullptr,
                                arguments.data(), environ);
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
  std::fprintf(to_, "%s\n", kind.c_str());
  std::fflush(to_);
  const std::string line = read_line();
  char* end = nullptr;
  const double seconds = std::strtod(line.c_str(), &end);
  if (end == line.c_str() || !(seconds > 0.0))
    throw Error("the peer " + description_ + " answered '" + line + "' to '" +
                kind + "', not seconds");
  return seconds;
}

std::string Peer::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_))
    line += static_cast<char>(c);
  return line;
}

}  // namespace kzero::bench
