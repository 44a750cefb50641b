// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the cases of kernels are asked for on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>

namespace kzero::bench {

struct KernelOptions {
  int rounds = 15;
  std::int64_t mebi_elements = 16;

  std::int64_t elements() const { return mebi_elements << 20; }
};

inline std::shared_ptr<KernelOptions> add_kernel_options(CLI::App& command) {
  const auto options = std::make_shared<KernelOptions>();
  command
      .add_option("--rounds", options->rounds, "Of which the median is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option("--elements", options->mebi_elements,
                  "Of a pass, in units of 2^20")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  return options;
}

}  // namespace kzero::bench
