// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero-bench: measures the library against its limits. Run it on the ranks
// that a case is for: mpiexec -n 2 kzero-bench overlap
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <exception>

#include "overlap.hpp"
#include "result.hpp"

namespace {

int run(int argc, char* argv[], int rank) {
  CLI::App app("Measures kzero against its limits, as ratios in one run.");
  bool json = false;
  int rounds = 7;
  app.require_subcommand(1);
  app.add_flag("--json", json, "One JSON object a line");
  app.add_option("--rounds", rounds, "Rounds; their median is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI::App* const overlap = app.add_subcommand(
      "overlap", "O1: communication behind computation, over a simulated link");
  overlap->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // One rank speaks for all.
    if (rank == 0) return app.exit(error);
    return error.get_exit_code();
  }
  const auto results = kzero::bench::overlap(MPI_COMM_WORLD, rounds);
  if (rank != 0) return 0;
  if (json)
    kzero::bench::print_json(results);
  else
    kzero::bench::print_table(results);
  return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  Kokkos::initialize(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int result = 1;
  try {
    result = run(argc, argv, rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kzero-bench: rank %d: %s\n", rank, error.what());
  }
  Kokkos::finalize();
  MPI_Finalize();
  return result;
}
