// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// C4: buckets so small that latency is what counts.
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

constexpr int kibibytes[] = {4, 16, 64, 256, 1024};

template <class Collective>
void measure_one(Report& report, const RankOptions& options, Ranks& ranks,
                 Collective collective, const std::string& what) {
  // As often as takes some milliseconds, the same number on all ranks.
  constexpr double seconds_each = 4e-3;
  const auto library = [&] { collective.with_library(); };
  const auto mpi = [&] { collective.with_mpi(); };
  const double first = ranks.time_of_each(10, mpi);
  const int calls = std::clamp(int(seconds_each / first), 1, 10000);
  const Candidate candidates[] = {
      [&] { return ranks.time_of_each(calls, library); },
      [&] { return ranks.time_of_each(calls, mpi); }};
  const auto seconds = alternate(options.rounds, candidates);
  report.add(summarize("C4", what, ratios(seconds[1], seconds[0]),
                       Goal::at_least, 1.0));
}

void measure(Report& report, const RankOptions& options) {
  Ranks ranks;
  const auto communicator = options.start();
  for (const int size : kibibytes) {
    const std::int64_t bytes = std::int64_t{size} << 10;
    const std::string where =
        ranks.text() + ", " + std::to_string(size) + " KiB: ";
    measure_one(
        report, options, ranks, ReduceScatter(communicator, bytes),
        "reduce-scatter, " + where + "MPI_Reduce_scatter_block / library");
    measure_one(report, options, ranks, AllGather(communicator, bytes),
                "all-gather, " + where + "MPI_Allgather in place / library");
  }
}

}  // namespace

void add_small_messages(CLI::App& app, Report& report) {
  CLI::App* const command =
      app.add_subcommand("small-messages", "C4: buckets of 4 KiB to 1 MiB");
  const auto options = std::make_shared<RankOptions>();
  add_options(*command, *options);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
