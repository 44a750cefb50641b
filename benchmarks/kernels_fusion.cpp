// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// K2: bfloat16 gradients and parameters. The library's passes against one for
// each operation: cast, norm, scale, AdamW, cast.
#include "kernel_options.hpp"
#include "kernels.hpp"
#include "kernels/prepared_step.hpp"
#include "probes.hpp"
#include "result.hpp"
#include "rounds.hpp"
#include "shard_pass.hpp"

namespace kzero::bench {
namespace {

using detail::BucketWork;

ParameterSet model_of(std::int64_t elements) {
  ParameterSet model;
  ParameterOptions options;
  options.dtype = DType::bfloat16;
  options.gradient_dtype = DType::bfloat16;
  model.add("flat", {elements}, options);
  return model;
}

float* floats(std::byte* array, std::int64_t begin) {
  return reinterpret_cast<float*>(array) + begin;
}

std::byte* codes(std::byte* array, std::int64_t begin) {
  return array + 2 * begin;
}

// The same kernels, each over the whole shard.
void unfused(ShardPass& pass, Workers workers) {
  const detail::HostKernels& kernels = detail::host_kernels();
  const Probes& loops = probes();
  const auto prepared = detail::prepare_step(AdamW(), 11, DType::bfloat16);
  using Tile = const BucketWork&;
  pass.for_each_tile(workers,
                     [&](Tile bucket, std::int64_t begin, std::int64_t count) {
                       kernels.widen[1](codes(bucket.gradients, begin),
                                        floats(bucket.averaged, begin), count);
                     });
  pass.for_each_tile(workers,
                     [&](Tile bucket, std::int64_t begin, std::int64_t count) {
                       [[maybe_unused]] volatile double sum =
                           loops.squares(floats(bucket.averaged, begin), count);
                     });
  pass.for_each_tile(workers,
                     [&](Tile bucket, std::int64_t begin, std::int64_t count) {
                       loops.scale(floats(bucket.averaged, begin), count, 0.5f);
                     });
  pass.for_each_tile(
      workers, [&](Tile bucket, std::int64_t begin, std::int64_t count) {
        detail::UpdateTile tile;
        tile.step = prepared.step;
        tile.gradient = floats(bucket.averaged, begin);
        tile.main = floats(bucket.main, begin);
        for (std::size_t array = 0; array < 2; ++array)
          tile.state[array] = floats(bucket.state[array], begin);
        tile.count = count;
        (*prepared.update)[static_cast<std::size_t>(DType::float32)](tile);
      });
  pass.for_each_tile(
      workers, [&](Tile bucket, std::int64_t begin, std::int64_t count) {
        kernels.narrow[1](floats(bucket.main, begin),
                          codes(bucket.parameter_shard, begin), count);
      });
}

void measure(Report& report, const KernelOptions& options) {
  ShardPass pass(model_of(options.elements()));
  for (const Workers workers : all_workers()) {
    const Candidate candidates[] = {
        [&] { return seconds_of(workers, [&] { unfused(pass, workers); }); },
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
    const std::string by = ", bfloat16, " +
                           std::to_string(options.mebi_elements) + " Mi, " +
                           name_of(workers);
    report.add(summarize("K2", "cast, norm, scale, AdamW, cast / one pass" + by,
                         ratios(seconds[0], seconds[1]), Goal::at_least, 2.2));
    report.add(summarize(
        "K2", "cast, norm, scale, AdamW, cast / two passes (clip)" + by,
        ratios(seconds[0], seconds[2]), Goal::at_least, 2.2));
  }
}

}  // namespace

void add_kernels_fusion(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "fusion", "K2: one pass against one for each operation");
  const auto options = add_kernel_options(*command);
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
