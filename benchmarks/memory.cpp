// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// M1: what the operating system saw of an optimizer, against the formula.
#include <CLI/CLI.hpp>
#include <fstream>
#include <kzero/kzero.hpp>
#include <memory>
#include <string>

#include "rank_cases.hpp"
#include "rank_options.hpp"
#include "ranks.hpp"
#include "result.hpp"

namespace kzero::bench {
namespace {

constexpr int parameters = 16;

/// A line "name: number kB" of a file of this process, in bytes.
double bytes_in(const char* file, const std::string& name) {
  std::ifstream lines(std::string("/proc/self/") + file);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(name + ":", 0) == 0)
      return 1024.0 * std::stod(line.substr(name.size() + 1));
  throw Error("the operating system does not say " + name + " (in /proc/self/" +
              file + ")");
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

/// Memory of this process; what several have counts for each in part.
double memory_now() { return bytes_in("smaps_rollup", "Pss"); }

/// And at its peak since that was forgotten.
double peak_memory() {
  return memory_now() + bytes_in("status", "VmHWM") -
         bytes_in("status", "VmRSS");
}

void step_twice(ShardedOptimizer& optimizer) {
  for (int step = 0; step < 2; ++step) {
    for (int i = parameters - 1; i >= 0; --i) optimizer.mark_ready({i});
    optimizer.step();
  }
  optimizer.wait_parameters();
}

ParameterSet model_of(std::int64_t elements) {
  ParameterSet model;
  ParameterOptions kind;
  kind.dtype = DType::bfloat16;
  for (int i = 0; i < parameters; ++i)
    model.add("layers/" + std::to_string(i), {elements / parameters}, kind);
  return model;
}

struct Bytes {
  double grown = 0;
  double expected = 0;
};

Bytes of_optimizer(Ranks& ranks,
                   const std::shared_ptr<Communicator>& communicator,
                   std::int64_t elements) {
  const ParameterSet model = model_of(elements);
  ranks.meet();
  forget_peak();
  const double before = memory_now();
  ranks.meet();
  ShardedOptimizer optimizer(communicator, model);
  step_twice(optimizer);
  ranks.meet();
  Bytes bytes;
  bytes.grown = peak_memory() - before;
  const Memory memory = optimizer.memory();
  const double padded = double(memory.parameters) / 2;
  bytes.expected =
      6 * padded + 12 * padded / ranks.size() + double(memory.staging);
  ranks.meet();
  return bytes;
}

void measure(Report& report, RankOptions options) {
  Ranks ranks;
  const auto communicator = options.start();
  {
    // What MPI and the C library take once.
    ShardedOptimizer small(communicator, model_of(1 << 20));
    step_twice(small);
  }
  for (const int mebi : options.sizes_or({64}, {16})) {
    const Bytes mine =
        of_optimizer(ranks, communicator, std::int64_t{mebi} << 20);
    const double ratio = ranks.sum(mine.grown) / ranks.sum(mine.expected);
    report.add(summarize("M1",
                         "peak memory, " + ranks.text() + ", " +
                             std::to_string(mebi) +
                             " Mi: seen / 6 + 12/P bytes a parameter, staging",
                         {ratio}, Goal::at_most, 1.02));
  }
}

}  // namespace

void add_memory(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "memory", "M1: peak memory of bfloat16 parameters with AdamW");
  const auto options = std::make_shared<RankOptions>();
  add_options(*command, *options);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
