// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A program whose last rank has forgotten Kokkos::initialize: every rank gets
// the same exception, none waits for another. Prints what went wrong.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <chrono>
#include <cstdio>
#include <kzero/kzero.hpp>
#include <string>

namespace {

std::string refusal() {
  const auto communicator = kzero::make_communicator(
      MPI_COMM_WORLD, {.timeout = std::chrono::seconds(30)});
  kzero::ParameterSet model;
  model.add("w", {10});
  try {
    kzero::ShardedOptimizer optimizer(communicator, model);
  } catch (const kzero::InvalidArgument& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "nothing was thrown";
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool forgetful = rank == size - 1;
  if (!forgetful) Kokkos::initialize(argc, argv);

  const std::string message = refusal();
  bool good = message.find("Kokkos::initialize") != std::string::npos;
  if (size > 1)
    good = good && message.find("(found on rank " + std::to_string(size - 1)) !=
                       std::string::npos;
  if (!good) std::printf("rank %d: %s\n", rank, message.c_str());

  if (!forgetful) Kokkos::finalize();
  MPI_Finalize();
  return good ? 0 : 1;
}
