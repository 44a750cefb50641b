// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A model with all types, shapes and names that are worth saving, and training
// whose bits do not depend on the number of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/optimizer_support.hpp"
#include "support/partitions.hpp"

namespace kzero::test {

inline ParameterSet varied_model() {
  ParameterSet model;
  const auto options = [](DType dtype, const char* group) {
    ParameterOptions parameter;
    parameter.dtype = dtype;
    parameter.group = group;
    return parameter;
  };
  using enum DType;
  model.add("layer 1/weight", {31, 7}, options(bfloat16, "default"));
  model.add("layer 1/bias", {31}, options(bfloat16, "plain"));
  model.add("größe/λ", {2, 3, 5}, options(float16, "default"));
  model.add("none", {0}, options(float32, "default"));
  model.add("no/rows", {0, 4}, options(bfloat16, "momentum"));
  model.add("a scalar", {}, options(float64, "momentum"));
  model.add(std::string(300, 'n'), {1000}, options(float32, "default"));
  model.add("five", {5}, options(float32, "plain"));
  model.add("double", {67}, options(float64, "default"));
  model.add("amsgrad", {129}, options(float32, "amsgrad"));
  model.add("..", {1}, options(float16, "momentum"));
  model.add("%2E%2E", {3, 1}, options(float16, "plain"));
  return model;
}

inline OptimizerOptions varied_options(std::int64_t bucket_bytes,
                                       const Partitioning& partition = {}) {
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.05};
  options.groups = {{"plain", Sgd{.learning_rate = 0.25}},
                    {"momentum", Sgd{.learning_rate = 0.1, .momentum = 0.9}},
                    {"amsgrad", AdamW{.learning_rate = 0.02, .amsgrad = true}}};
  options.reduction = Reduction::sum;
  options.plan.bucket_bytes = bucket_bytes;
  partition.set(options.plan);
  return options;
}

inline ShardedOptimizer make_varied(std::shared_ptr<Communicator> communicator,
                                    std::int64_t bucket_bytes,
                                    const Partitioning& partition = {}) {
  return ShardedOptimizer(std::move(communicator), varied_model(),
                          varied_options(bucket_bytes, partition));
}

/// A number in (-1, 1) that looks random.
inline double scatter(std::int64_t a, std::int64_t b, std::int64_t c) {
  auto x = static_cast<std::uint64_t>(a * 1000003 + b * 10007 + c + 1);
  for (int i = 0; i < 3; ++i) x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  return static_cast<double>(x >> 40) / double{1 << 23} - 1.0;
}

inline void write_start(ShardedOptimizer& optimizer, std::int64_t seed) {
  for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
    write_parameter(optimizer, {p},
                    [&](std::int64_t i) { return scatter(seed, p, i); });
}

/// Gradients depend on the step, and all but rank 0's are zero: their sum does
/// not depend on the number of ranks.
inline void train(ShardedOptimizer& optimizer, int steps) {
  const bool root = optimizer.communicator()->rank() == 0;
  for (int s = 0; s < steps; ++s) {
    const std::int64_t now = optimizer.steps();
    for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
      fill_gradient(optimizer, {p}, [&](std::int64_t i) {
        return root ? scatter(now, p, i) : 0.0;
      });
    optimizer.step();
  }
}

}  // namespace kzero::test
