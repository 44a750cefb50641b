// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero-bench: measures one case on the ranks that it is started on. Rank 0
// prints the results.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <kzero/runtime.hpp>
#include <kzero/version.hpp>
#include <string>

#include "cases.hpp"
#include "result.hpp"

namespace {

using kzero::bench::Format;
using kzero::bench::Report;

/// The exit code. The chosen case runs while the command line is parsed.
int run(int argc, char** argv, int rank) {
  CLI::App app("Speed of kzero, as ratios measured side by side in one run",
               "kzero-bench");
  bool as_json = false;
  app.add_flag("--json", as_json, "One JSON object a line, not a table");
  app.set_version_flag("--version", std::string(kzero::version()));
  app.require_subcommand(1);
  app.fallthrough();
  Report report;
  kzero::bench::add_cases(app, report);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return rank == 0 ? app.exit(error) : error.get_exit_code();
  }
  if (rank == 0) {
    report.print(std::cout, as_json ? Format::json : Format::table);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  kzero::initialize();  // the arguments are ours: Kokkos knows --help as well
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int code = 1;
  try {
    code = run(argc, argv, rank);
  } catch (const std::exception& error) {
    std::cerr << "kzero-bench (rank " << rank << "): " << error.what()
              << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);  // The others may wait for this rank.
  }
  kzero::finalize();
  return code;
}
