// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// O1: how much of the communication hides behind work. The computation sleeps,
// and the link is set so that the communication takes as long.
#include "overlap.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <kzero/kzero.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "result.hpp"

namespace kzero::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t layers = 12;
constexpr std::int64_t width = 64 * 1024;  // float32 elements, a bucket each
constexpr double layer_seconds = 8e-3;     // of each pass, and of each transfer
constexpr double latency_seconds = 50e-6;
constexpr int steps = 3;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Variant {
  const char* what;
  Schedule schedule;
  GatherMode gather;
  Progress progress;

  bool overlaps() const { return schedule == Schedule::after_backward; }
};

constexpr Variant variants[] = {
    {"step, without a thread / max(compute, communication) + first and last "
     "bucket",
     Schedule::after_backward, GatherMode::overlapped, Progress::calls},
    {"step, with a thread / max(compute, communication) + first and last "
     "bucket",
     Schedule::after_backward, GatherMode::overlapped, Progress::thread},
    {"step, no overlap / compute + communication", Schedule::at_step,
     GatherMode::at_step, Progress::calls}};

class Training {
 public:
  Training(const std::shared_ptr<Communicator>& communicator,
           const Variant& variant) {
    ParameterSet model;
    for (std::int64_t l = 0; l < layers; ++l)
      model.add("layers/" + std::to_string(l), {width});
    OptimizerOptions options;
    options.rule = Sgd();
    options.schedule = variant.schedule;
    options.gather = variant.gather;
    options.progress = variant.progress;
    options.plan.bucket_bytes = width * 4;
    optimizer_ =
        std::make_unique<ShardedOptimizer>(communicator, model, options);
    // Allocates.
    optimizer_->step();
    optimizer_->wait_parameters();
  }

  /// Seconds a step, and of them those in which it slept.
  struct Times {
    double step = 0.0;
    double computation = 0.0;
  };

  /// From the end of one step to the end of a later one: with gathers under way
  /// at both ends.
  Times run() {
    Times times;
    optimizer_->communicator()->barrier({"benchmark"});
    step(times.computation);
    times = {};
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) step(times.computation);
    times.step = seconds_since(begin) / steps;
    times.computation /= steps;
    optimizer_->wait_parameters(space_);
    return times;
  }

 private:
  void step(double& computation) {
    for (std::int64_t l = 0; l < layers; ++l) {
      static_cast<void>(optimizer_->parameter<const float*>({l}, space_));
      compute(computation);
    }
    for (std::int64_t l = layers - 1; l >= 0; --l) {
      compute(computation);
      optimizer_->mark_ready({l}, space_);
    }
    optimizer_->step();
  }

  static void compute(double& seconds) {
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(layer_seconds));
    seconds += seconds_since(begin);
  }

  const ExecutionSpace space_{};
  std::unique_ptr<ShardedOptimizer> optimizer_;
};

// Every rank's ratio: the slowest counts.
double largest_of_all(Communicator& communicator, double mine) {
  std::vector<double> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&mine, sizeof mine, all.data(), {"benchmark"});
  return *std::max_element(all.begin(), all.end());
}

void measure(Report& report, int rounds) {
  CommunicatorOptions options;
  options.timeout = std::chrono::minutes(1);
  const auto inner = make_communicator(MPI_COMM_WORLD, options);
  const double bytes = double(width) * 4 * (inner->size() - 1) / inner->size();
  const SimulatedLink link{
      std::chrono::nanoseconds(std::llround(latency_seconds * 1e9)),
      std::max(bytes, 1.0) / (layer_seconds - latency_seconds)};
  const auto communicator = make_simulated_communicator(inner, link);
  const double transfer = inner->size() == 1 ? latency_seconds : layer_seconds;
  const double communication = 2 * layers * transfer;
  std::vector<Training> trainings;
  for (const Variant& variant : variants)
    trainings.emplace_back(communicator, variant);
  std::vector<std::vector<double>> ratios(std::size(variants));
  for (int round = 0; round < rounds; ++round)
    for (std::size_t v = 0; v < std::size(variants); ++v) {
      const auto times = trainings[v].run();
      const double limit =
          variants[v].overlaps()
              ? std::max(times.computation, communication) + 2 * transfer
              : times.computation + communication;
      ratios[v].push_back(largest_of_all(*inner, times.step / limit));
    }
  // Without overlap the run must take the sum, or the link costs nothing.
  for (std::size_t v = 0; v < std::size(variants); ++v)
    report.add(
        summarize("O1", variants[v].what, std::move(ratios[v]),
                  variants[v].overlaps() ? Goal::at_most : Goal::at_least,
                  variants[v].overlaps() ? 1.10 : 0.95));
}

}  // namespace

void add_overlap(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "overlap", "O1: communication behind computation, over a simulated link");
  const auto rounds = std::make_shared<int>(7);
  command->add_option("--rounds", *rounds, "Of which the median is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->callback([rounds, &report] { measure(report, *rounds); });
}

}  // namespace kzero::bench
