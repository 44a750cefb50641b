// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "network.hpp"

namespace digits {

struct Options {
  NetworkOptions network;
  std::int64_t batch = 64;  // images, over all ranks
  std::int64_t epochs = 60;
  std::optional<double> learning_rate;  // else default_learning_rate
  std::optional<double> weight_decay;   // else default_weight_decay
  std::optional<double> clip;
  std::optional<kzero::Scaler> scaler;  // else default_scaler()
  std::int64_t seed = 4;
  std::optional<std::int64_t> bucket_bytes;
  std::filesystem::path checkpoint;   // empty: none
  std::int64_t checkpoint_every = 0;  // epochs; 0: at the end only
  bool resume = false;
  bool progress = false;
  std::filesystem::path metrics;  // empty: none
  std::filesystem::path data;     // empty: find_digits()
  bool help = false;
};

inline constexpr double default_learning_rate = 2e-3;
inline constexpr double default_weight_decay = 0.1;

/// Gradients of 16 bits need a scale that adapts itself; others need none.
kzero::Scaler default_scaler(kzero::DType dtype);

/// Takes the options out of the command line and leaves the program's name and
/// what is Kokkos' (--kokkos-...). Throws UserError for anything else, for
/// values out of range and for options that do not go together.
Options take_options(int& argc, char* argv[]);

/// The text of --help.
std::string usage();

}  // namespace digits
