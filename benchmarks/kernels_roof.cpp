// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// K1: the AdamW pass against a loop without arithmetic that reads and writes
// the same memory in the same tiles. What the loop moves a second is printed
// beside the type: the limit of the machine.
#include <algorithm>
#include <cstdio>
#include <kzero/dtype.hpp>
#include <string>

#include "kernel_options.hpp"
#include "kernels.hpp"
#include "result.hpp"
#include "rounds.hpp"
#include "shard_pass.hpp"

namespace kzero::bench {
namespace {

// Read and written: gradient, main parameter, two moments; and the parameter
// where it has 16 bits.
double bytes_of(DType dtype) {
  const double main = static_cast<double>(size_of(main_dtype(dtype)));
  return 7 * main + (size_of(dtype) == 2 ? 2 : 0);
}

std::string what_of(DType dtype, const KernelOptions& options, Workers workers,
                    std::vector<double> probe) {
  std::sort(probe.begin(), probe.end());
  const double rate = bytes_of(dtype) *
                      static_cast<double>(options.elements()) /
                      probe[probe.size() / 2];
  char text[160];
  std::snprintf(text, sizeof(text),
                "loop without arithmetic / AdamW, %s, %d Mi, %s (%.1f GB/s)",
                std::string(to_string(dtype)).c_str(),
                static_cast<int>(options.mebi_elements),
                name_of(workers).c_str(), rate * 1e-9);
  return text;
}

void measure(Report& report, const KernelOptions& options) {
  for (const DType dtype :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    ShardPass pass(ShardPass::flat_model(dtype, options.elements()));
    for (const Workers workers : all_workers()) {
      const Candidate candidates[] = {
          [&] { return seconds_of(workers, [&] { pass.probe(workers); }); },
          [&] { return seconds_of(workers, [&] { pass.update(workers); }); }};
      const auto seconds = alternate(options.rounds, candidates);
      report.add(summarize("K1", what_of(dtype, options, workers, seconds[0]),
                           ratios(seconds[0], seconds[1]), Goal::at_least,
                           0.95));
    }
  }
}

}  // namespace

void add_kernels_roof(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "roof", "K1: the update pass against a loop without arithmetic");
  const auto options = add_kernel_options(*command);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
