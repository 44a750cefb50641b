// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the pass is given must not matter. K4: many short segments. K5: denormal
// moments.
#include <kzero/dtype.hpp>

#include "kernel_options.hpp"
#include "kernels.hpp"
#include "result.hpp"
#include "rounds.hpp"
#include "shard_pass.hpp"

namespace kzero::bench {
namespace {

// Each begins at a multiple of 64 elements: size may be less by up to 63 and
// takes the same memory.
ParameterSet segments(std::int64_t elements, std::int64_t size,
                      std::int64_t less) {
  ParameterSet model;
  ParameterOptions options;
  options.dtype = DType::bfloat16;
  for (std::int64_t i = 0; i < elements / size; ++i)
    model.add("p" + std::to_string(i), {size - less}, options);
  return model;
}

void measure_segments(Report& report, const KernelOptions& options) {
  ShardPass one(segments(options.elements(), options.elements(), 0));
  for (const std::int64_t size : {64, 256, 1024, 4096, 65536})
    for (const std::int64_t less : {0, 3}) {
      ShardPass many(segments(options.elements(), size, less), one);
      for (const Workers workers : all_workers()) {
        const Candidate candidates[] = {
            [&] {
              return seconds_of(workers, [&] { many.sum_and_update(workers); });
            },
            [&] {
              return seconds_of(workers, [&] { one.sum_and_update(workers); });
            }};
        const auto seconds = alternate(options.rounds, candidates);
        report.add(summarize("K4",
                             "segments of " + std::to_string(size - less) +
                                 " elements / one segment, bfloat16, " +
                                 name_of(workers),
                             ratios(seconds[0], seconds[1]), Goal::at_most,
                             size == 64 ? 1.15 : 1.05));
      }
    }
}

// The largest denormal number is about 1.2e-38, of doubles 2.2e-308.
double denormal(DType dtype) {
  return main_dtype(dtype) == DType::float64 ? 1e-310 : 1e-39;
}

void measure_denormals(Report& report, const KernelOptions& options) {
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::float64}) {
    ShardPass pass(ShardPass::flat_model(dtype, options.elements()));
    for (const Workers workers : all_workers()) {
      const auto run = [&](double gradient, double moment) {
        pass.fill_gradients(gradient);
        pass.fill_moments(moment);
        return seconds_of(workers, [&] { pass.update(workers); });
      };
      const Candidate candidates[] = {
          [&] { return run(denormal(dtype), denormal(dtype)); },
          [&] { return run(0.5, 0.25); }};
      const auto seconds = alternate(options.rounds, candidates);
      report.add(
          summarize("K5",
                    "AdamW, denormal moments / normal ones, " +
                        std::string(to_string(dtype)) + ", " + name_of(workers),
                    ratios(seconds[0], seconds[1]), Goal::at_most, 1.05));
    }
  }
}

}  // namespace

void add_kernels_segments(CLI::App& app, Report& report) {
  CLI::App* const command =
      app.add_subcommand("segments", "K4: many short segments against one");
  const auto options = add_kernel_options(*command);
  command->callback([options, &report] { measure_segments(report, *options); });
}

void add_kernels_denormals(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "denormals", "K5: denormal moments against normal ones");
  const auto options = add_kernel_options(*command);
  command->callback(
      [options, &report] { measure_denormals(report, *options); });
}

}  // namespace kzero::bench
