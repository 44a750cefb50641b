// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "rank_options.hpp"

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <map>
#include <utility>

namespace kzero::bench {

namespace {

template <class B>
std::map<std::string, B> backends() {
  std::map<std::string, B> names = {
      {"automatic", B::automatic}, {"self", B::self}, {"mpi", B::mpi}};
  if constexpr (requires { B::node; }) names.emplace("node", B::node);
  return names;
}

template <class T>
void add_choice(CLI::App& command, const char* option, T& value,
                const std::map<std::string, T>& names, const char* what) {
  std::vector<std::string> known;
  for (const auto& name : names) known.push_back(name.first);
  command
      .add_option_function<std::string>(
          option,
          [names, &value](const std::string& name) { value = names.at(name); },
          what)
      ->check(CLI::IsMember(known));
}

// glibc takes large blocks from mmap and no threshold above 32 MiB, so mmap is
// not to be used at all.
void tune_malloc() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace

std::vector<int> RankOptions::sizes_or(std::vector<int> sizes,
                                       std::vector<int> of_brief) {
  if (!mebibytes.empty()) return mebibytes;
  return brief ? std::move(of_brief) : std::move(sizes);
}

std::shared_ptr<Communicator> RankOptions::start() const {
  if (malloc == Malloc::tuned) tune_malloc();
  CommunicatorOptions with;
  with.backend = backend;
  with.timeout = std::chrono::minutes(2);
  return make_communicator(MPI_COMM_WORLD, with);
}

void add_options(CLI::App& command, RankOptions& options) {
  command
      .add_option("--rounds", options.rounds, "Of which the median is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_choice(command, "--backend", options.backend, backends<Backend>(),
             "Communicator that is measured");
  add_choice(command, "--malloc", options.malloc,
             {{"usual", Malloc::usual}, {"tuned", Malloc::tuned}},
             "Of this process");
  command
      .add_option("--mib", options.mebibytes, "Sizes, instead of the case's")
      ->check(CLI::Range(1, 1 << 14))
      ->delimiter(',');
  command.add_flag("--short", options.brief, "Small sizes, seconds in all");
}

}  // namespace kzero::bench
