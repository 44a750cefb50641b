// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// U1: what it takes until an optimizer is there: declaring, planning,
// agreeing.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <kzero/kzero.hpp>
#include <memory>
#include <string>

#include "rank_cases.hpp"
#include "rank_options.hpp"
#include "ranks.hpp"
#include "result.hpp"
#include "rounds.hpp"
#include "support/counting_communicator.hpp"

namespace kzero::bench {
namespace {

constexpr double add_seconds = 1e-6;
constexpr double plan_seconds = 100e-9;
constexpr int few_ranks = 2;
constexpr int many_ranks = 4096;

std::vector<std::string> names_of(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i)
    names.push_back("transformer.layers." + std::to_string(i / 4) +
                    ".attention." + std::to_string(i % 4) + ".weight");
  return names;
}

// Of the processor: one thread computes, and others may have the core between.
template <class F>
double processor_seconds_of(F&& call) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  const double begin = now();
  call();
  return now() - begin;
}

ParameterSet model_of(std::vector<std::string> names) {
  ParameterSet model;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i % 4 == 3)
      model.add(std::move(names[i]), {1024});
    else
      model.add(std::move(names[i]), {1024, 1024});
  return model;
}

PlanOptions on(int ranks) {
  PlanOptions options;
  options.ranks = ranks;
  return options;
}

void measure_size(Report& report, int rounds, int count) {
  const std::vector<std::string> names = names_of(count);
  const ParameterSet model = model_of(names);
  const int calls = std::max(1, 100'000 / count);
  const auto planning = [&](int ranks) {
    double seconds = 0;
    for (int i = 0; i < calls; ++i)
      seconds += processor_seconds_of([&] { make_plan(model, on(ranks)); });
    return seconds / calls / count;
  };
  const Candidate candidates[] = {[&] {
                                    double seconds = 0;
                                    for (int i = 0; i < calls; ++i) {
                                      std::vector<std::string> copies = names;
                                      ParameterSet made;
                                      seconds += processor_seconds_of([&] {
                                        made = model_of(std::move(copies));
                                      });
                                    }
                                    return seconds / calls / count;
                                  },
                                  [&] { return planning(few_ranks); },
                                  [&] { return planning(many_ranks); }};
  const auto seconds = alternate(rounds, candidates);
  const auto against = [&](double limit) {
    return std::vector<double>(seconds[0].size(), limit);
  };
  const std::string what = std::to_string(count) + " parameters: ";
  report.add(summarize("U1", "add, " + what + "each / 1 us",
                       ratios(seconds[0], against(add_seconds)), Goal::at_most,
                       1.0));
  report.add(summarize("U1", "make_plan, " + what + "each / 100 ns",
                       ratios(seconds[1], against(plan_seconds)), Goal::at_most,
                       1.0));
  report.add(summarize("U1", "make_plan, " + what + "4096 ranks / 2 ranks",
                       ratios(seconds[2], seconds[1]), Goal::at_most, 1.1));
}

void measure_collectives(Report& report, Ranks& ranks,
                         const std::shared_ptr<Communicator>& communicator) {
  const auto counting =
      std::make_shared<test::CountingCommunicator>(communicator);
  const ShardedOptimizer optimizer(counting, model_of(names_of(8)));
  report.add(
      summarize("U1", "construction, " + ranks.text() + ": collectives / 2",
                {double(counting->collectives) / 2}, Goal::at_most, 1.0));
}

void measure(Report& report, const RankOptions& options) {
  Ranks ranks;
  const auto communicator = options.start();
  if (ranks.rank() == 0)
    for (int count = 1000; count <= (options.brief ? 100'000 : 1'000'000);
         count *= 10)
      measure_size(report, options.rounds, count);
  ranks.meet();
  measure_collectives(report, ranks, communicator);
}

}  // namespace

void add_set_up(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "set-up", "U1: declaring and laying out 1,000 to 1,000,000 parameters");
  const auto options = std::make_shared<RankOptions>();
  add_options(*command, *options);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
