// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// K3: the pass against AdamW of other libraries, on one float32 parameter. They
// run in programs of their own that wait while we work.
#include <cstdlib>
#include <string>

#include "kernel_options.hpp"
#include "kernels.hpp"
#include "peer.hpp"
#include "result.hpp"
#include "rounds.hpp"
#include "shard_pass.hpp"

namespace kzero::bench {
namespace {

struct Opponent {
  const char* script;
  const char* package;
  std::vector<std::string> kinds;
};

const Opponent opponents[] = {
    {"torch_adamw.py", "torch", {"fused", "foreach", "plain"}},
    {"deepspeed_adam.py", "deepspeed", {"fused"}}};

void measure_kind(Report& report, const KernelOptions& options, Workers workers,
                  ShardPass& pass, Peer& peer, const std::string& kind) {
  const std::string what =
      peer.description().substr(0, peer.description().rfind(' ')) + " AdamW " +
      kind + " / ";
  const std::string by = ", float32, " + std::to_string(options.mebi_elements) +
                         " Mi, " + name_of(workers);
  const Candidate candidates[] = {
      [&] { return peer.run(kind); }, [&] { return peer.run(kind + "+clip"); },
      [&] { return seconds_of(workers, [&] { pass.update(workers); }); },
      [&] {
        return seconds_of(workers, [&] { pass.sum_and_update(workers); });
      },
      [&] {
        return seconds_of(workers, [&] {
          pass.sum(workers);
          pass.update(workers, 0.5);
        });
      }};
  const auto seconds = alternate(options.rounds, candidates);
  report.add(summarize("K3", what + "update" + by,
                       ratios(seconds[0], seconds[2]), Goal::at_least, 0.95));
  report.add(summarize("K3", what + "sum and update" + by,
                       ratios(seconds[0], seconds[3]), Goal::at_least, 0.95));
  report.add(summarize("K3", what + "sum, clip, update" + by + ", both clip",
                       ratios(seconds[1], seconds[4]), Goal::at_least, 1.3));
}

void measure(Report& report, const KernelOptions& options,
             const std::string& python) {
  for (const Workers workers : all_workers()) {
    ShardPass pass(ShardPass::flat_model(DType::float32, options.elements()));
    for (const Opponent& opponent : opponents) {
      const int threads = workers == Workers::one ? 1 : kokkos_threads();
      Peer peer({python, std::string(KZERO_PEERS) + "/" + opponent.script,
                 std::to_string(options.elements()), std::to_string(threads)});
      if (!peer.ready()) {
        report.add(not_installed("K3", std::string(opponent.package) +
                                           " AdamW / update, " +
                                           name_of(workers)));
        continue;
      }
      for (const std::string& kind : opponent.kinds)
        if (peer.description().find(kind) != std::string::npos)
          measure_kind(report, options, workers, pass, peer, kind);
    }
  }
}

}  // namespace

void add_kernels_peers(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "peers", "K3: the update pass against other libraries' AdamW");
  const auto options = add_kernel_options(*command);
  const auto python = std::make_shared<std::string>("python3");
  command
      ->add_option("--python", *python,
                   "With torch, and deepspeed if it is to be measured")
      ->envname("KZERO_BENCH_PYTHON")
      ->capture_default_str();
  command->callback(
      [options, python, &report] { measure(report, *options, *python); });
}

}  // namespace kzero::bench
