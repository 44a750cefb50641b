// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// C2: updated shards to all ranks, each of which has a copy of its own.
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

void measure(Report& report, RankOptions options) {
  Ranks ranks;
  const auto communicator = options.start();
  for (const int mebibytes : options.sizes_or({8, 32, 128}, {8})) {
    AllGather gather(communicator, std::int64_t{mebibytes} << 20);
    const int calls = std::max(1, 64 / mebibytes);
    const Candidate candidates[] = {
        [&] {
          return ranks.time_of_each(calls, [&] { gather.with_library(); });
        },
        [&] { return ranks.time_of_each(calls, [&] { gather.with_mpi(); }); }};
    const auto seconds = alternate(options.rounds, candidates);
    report.add(summarize("C2",
                         "all-gather, " + ranks.text() + ", " +
                             std::to_string(mebibytes) +
                             " MiB: MPI_Allgather in place / library",
                         ratios(seconds[1], seconds[0]), Goal::at_least, 1.6));
  }
}

}  // namespace

void add_all_gather(CLI::App& app, Report& report) {
  CLI::App* const command =
      app.add_subcommand("all-gather", "C2: shards to copies on all ranks");
  const auto options = std::make_shared<RankOptions>();
  add_options(*command, *options);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
