// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// S1: a whole step, against one from MPI calls, against PyTorch, and against
// the bytes that it has to move.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <kzero/kzero.hpp>
#include <memory>
#include <string>
#include <utility>

#include "peer.hpp"
#include "rank_cases.hpp"
#include "rank_options.hpp"
#include "ranks.hpp"
#include "result.hpp"
#include "rounds.hpp"
#include "step_by_hand.hpp"

namespace kzero::bench {
namespace {

struct StepOptions : RankOptions {
  std::string python = "python3";
  std::int64_t bucket_bytes = PlanOptions().bucket_bytes;
};

class LibraryStep {
 public:
  LibraryStep(const std::shared_ptr<Communicator>& communicator,
              const StepSize& size, std::int64_t bucket_bytes,
              bool share_parameters)
      : each_(size.elements / size.parameters) {
    ParameterSet model;
    ParameterOptions kind;
    kind.dtype = DType::bfloat16;
    for (int i = 0; i < size.parameters; ++i)
      model.add("layers/" + std::to_string(i), {each_}, kind);
    OptimizerOptions options;
    options.rule = AdamW{};
    options.clip_norm = size.clip_norm;
    options.plan.bucket_bytes = bucket_bytes;
    options.share_parameters = share_parameters;
    optimizer_ =
        std::make_unique<ShardedOptimizer>(communicator, model, options);
    for (int p = 0; p < size.parameters; ++p) {
      const auto gradient = optimizer_->gradient<float*>({p});
      for (std::int64_t i = 0; i < each_; ++i)
        gradient(i) = first_gradient(p * each_ + i, communicator->rank());
    }
  }

  void run() {
    optimizer_->step();
    optimizer_->zero_gradients();
  }

  /// Largest difference of a parameter from what others have.
  double difference(const HugeVector<bfloat16>& others) {
    double most = 0;
    for (int p = 0; p < optimizer_->parameters().size(); ++p) {
      const auto mine = optimizer_->parameter<const bfloat16*>({p});
      for (std::int64_t i = 0; i < each_; ++i)
        most = std::max(
            most,
            std::abs(double(float(mine(i))) -
                     float(others[static_cast<std::size_t>(p * each_ + i)])));
    }
    return most;
  }

 private:
  std::int64_t each_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
};

// The other ranks have none: rank 0 speaks with it.
std::unique_ptr<Peer> torch_of(const StepOptions& options, const Ranks& ranks) {
  if (ranks.rank() != 0) return nullptr;
  auto peer = std::make_unique<Peer>(std::vector<std::string>{
      options.python, std::string(KZERO_PEERS) + "/torch_zero.py",
      std::to_string(ranks.size())});
  return peer->ready() ? std::move(peer) : nullptr;
}

void measure_one(Report& report, const StepOptions& options, Ranks& ranks,
                 const std::shared_ptr<Communicator>& communicator, Peer* torch,
                 const StepSize& size) {
  LibraryStep library(communicator, size, options.bucket_bytes, false);
  LibraryStep sharing(communicator, size, options.bucket_bytes, true);
  StepByHand by_hand(size, ranks.size(), ranks.rank());
  library.run();
  sharing.run();
  by_hand.run();
  // AdamW's first steps are of 1e-3, and rounding differs in the last bits.
  if (!(library.difference(by_hand.parameters()) < 1e-5) ||
      !(sharing.difference(by_hand.parameters()) < 1e-5))
    throw Error("the library's step and the one by hand differ");

  if (torch != nullptr)
    torch->set_up(std::to_string(size.elements) + ' ' +
                  std::to_string(size.parameters) + ' ' +
                  std::to_string(size.clip_norm.value_or(0)));
  std::vector<Candidate> candidates = {
      [&] { return ranks.time([&] { library.run(); }); },
      [&] { return ranks.time([&] { sharing.run(); }); },
      [&] { return ranks.time([&] { by_hand.run(); }); },
      [&] { return ranks.time([&] { by_hand.move_bytes(Copies::each); }); },
      [&] { return ranks.time([&] { by_hand.move_bytes(Copies::one); }); }};
  const bool has_torch = ranks.from_first(torch != nullptr ? 1 : 0) > 0;
  if (has_torch)
    candidates.push_back([&] {
      return ranks.from_first(torch != nullptr ? torch->run("round") : 0.0);
    });
  const auto seconds = alternate(options.rounds, candidates);

  const std::string what = "step, " + ranks.text() + ", " +
                           std::to_string(size.elements >> 20) + " Mi" +
                           (size.clip_norm ? ", clip: " : ": ");
  const double of_loop = ranks.size() > 2 ? 0.75 : 0.85;
  const auto add = [&](const std::string& name, std::size_t mine,
                       std::size_t loop) {
    report.add(summarize("S1", what + "from MPI calls / " + name,
                         ratios(seconds[2], seconds[mine]), Goal::at_least,
                         2.5));
    report.add(summarize("S1", what + "loop over the bytes / " + name,
                         ratios(seconds[loop], seconds[mine]), Goal::at_least,
                         of_loop));
    const std::string of_torch = what + "PyTorch DDP + ZeRO (gloo) / " + name;
    report.add(has_torch ? summarize("S1", of_torch,
                                     ratios(seconds[5], seconds[mine]),
                                     Goal::at_least, 8.0)
                         : not_installed("S1", of_torch));
  };
  add("library", 0, 3);
  add("library, shared parameters", 1, 4);
}

void measure(Report& report, StepOptions options) {
  Ranks ranks;
  const auto communicator = options.start();
  const auto torch = torch_of(options, ranks);
  for (const int mebi : options.sizes_or({16, 64}, {2}))
    for (const bool clip : {false, true}) {
      StepSize size;
      const std::int64_t unit =
          std::int64_t{64} * ranks.size() * size.parameters;
      size.elements = (std::int64_t{mebi} << 20) / unit * unit;
      if (clip) size.clip_norm = 1.0;
      measure_one(report, options, ranks, communicator, torch.get(), size);
    }
}

}  // namespace

void add_step(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "step", "S1: a whole step of AdamW, bfloat16 parameters");
  const auto options = std::make_shared<StepOptions>();
  options->malloc = Malloc::tuned;
  add_options(*command, *options);
  command->add_option("--python", options->python, "With torch")
      ->envname("KZERO_BENCH_PYTHON")
      ->capture_default_str();
  command->add_option("--bucket-bytes", options->bucket_bytes,
                      "PlanOptions::bucket_bytes");
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
