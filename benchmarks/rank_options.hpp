// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Options of the cases that run on ranks.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

namespace CLI {
class App;
}

namespace kzero::bench {

/// How this process' malloc works. usual: as the C library has it, which gives
/// large blocks back to the system and takes fresh ones, page by page, each
/// time. tuned: it keeps them; MPI's temporary buffers cost nothing then.
enum class Malloc { usual, tuned };

struct RankOptions {
  int rounds = 7;
  Backend backend = Backend::automatic;
  Malloc malloc = Malloc::usual;
  /// Small sizes, to see whether all is well.
  bool brief = false;
  /// In MiB; empty: those of the case.
  std::vector<int> mebibytes;

  /// sizes: of the case, when neither brief nor the command line names others.
  std::vector<int> sizes_or(std::vector<int> sizes, std::vector<int> of_brief);

  /// Over all ranks. Tunes malloc, if that is wanted.
  std::shared_ptr<Communicator> start() const;
};

void add_options(CLI::App& command, RankOptions& options);

}  // namespace kzero::bench
