// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// C1 and C3: the gradients of all ranks become the sum of a shard on each.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "collectives.hpp"
#include "rank_cases.hpp"
#include "rank_options.hpp"
#include "ranks.hpp"
#include "result.hpp"
#include "rounds.hpp"

namespace kzero::bench {
namespace {

struct Targets {
  const char* name;
  double of_mpi;
  double of_probe;  // 0: none
};

// C1 is for two ranks, C3 for more of them than there are cores.
Targets targets_of(const RankOptions& options, int ranks, int mebibytes) {
  if (ranks > 2) return {"C3", mebibytes <= 8 ? 3.0 : 1.5, 0};
  if (options.malloc == Malloc::tuned) return {"C1", 2.5, 0};
  return {"C1", 4.0, 0.85};
}

void measure_size(Report& report, const RankOptions& options, Ranks& ranks,
                  const std::shared_ptr<Communicator>& communicator,
                  int mebibytes) {
  ReduceScatter reduction(communicator, std::int64_t{mebibytes} << 20);
  // Some 32 MiB a candidate and round.
  const int calls = std::max(1, 32 / mebibytes);
  const Candidate candidates[] = {
      [&] {
        return ranks.time_of_each(calls, [&] { reduction.with_library(); });
      },
      [&] { return ranks.time_of_each(calls, [&] { reduction.with_mpi(); }); },
      [&] {
        return ranks.time_of_each(calls, [&] { reduction.with_loop(); });
      }};
  const auto seconds = alternate(options.rounds, candidates);
  const Targets targets = targets_of(options, ranks.size(), mebibytes);
  const std::string what = "reduce-scatter, " + ranks.text() + ", " +
                           std::to_string(mebibytes) + " MiB: ";
  const char* mpi = options.malloc == Malloc::tuned
                        ? "MPI_Reduce_scatter_block with tuned malloc / library"
                        : "MPI_Reduce_scatter_block / library";
  report.add(summarize(targets.name, what + mpi, ratios(seconds[1], seconds[0]),
                       Goal::at_least, targets.of_mpi));
  if (targets.of_probe > 0)
    report.add(summarize(targets.name, what + "loop over the bytes / library",
                         ratios(seconds[2], seconds[0]), Goal::at_least,
                         targets.of_probe));
}

void measure(Report& report, RankOptions options) {
  Ranks ranks;
  const auto communicator = options.start();
  const std::vector<int> sizes =
      ranks.size() > 2 ? options.sizes_or({8, 64}, {8})
                       : options.sizes_or({1, 8, 32, 128}, {1, 8});
  for (const int mebibytes : sizes)
    measure_size(report, options, ranks, communicator, mebibytes);
}

}  // namespace

void add_reduce_scatter(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "reduce-scatter",
      "C1 (2 ranks), C3 (more): gradients to the sum of a shard");
  const auto options = std::make_shared<RankOptions>();
  add_options(*command, *options);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
