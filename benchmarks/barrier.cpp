// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// C3: what it costs that the ranks wait for one another.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "rank_cases.hpp"
#include "rank_options.hpp"
#include "ranks.hpp"
#include "result.hpp"
#include "rounds.hpp"

namespace kzero::bench {
namespace {

constexpr double limit_seconds = 0.2e-3;
constexpr int calls = 20;

void measure(Report& report, const RankOptions& options) {
  Ranks ranks;
  const auto communicator = options.start();
  const Candidate candidates[] = {
      [&] {
        return ranks.time_of_each(
            calls, [&] { communicator->barrier({"benchmark"}); });
      },
      [&] {
        return ranks.time_of_each(calls, [] { MPI_Barrier(MPI_COMM_WORLD); });
      }};
  const auto seconds = alternate(options.rounds, candidates);
  const std::string what = "barrier, " + ranks.text() + ": ";
  const std::vector<double> limit(seconds[0].size(), limit_seconds);
  report.add(summarize("C3", what + "library / 0.2 ms",
                       ratios(seconds[0], limit), Goal::at_most, 1.0));
  report.add(summarize("C3", what + "MPI_Barrier / library",
                       ratios(seconds[1], seconds[0]), Goal::at_least, 1.0));
}

}  // namespace

void add_barrier(CLI::App& app, Report& report) {
  CLI::App* const command =
      app.add_subcommand("barrier", "C3: ranks wait for one another");
  const auto options = std::make_shared<RankOptions>();
  add_options(*command, *options);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
