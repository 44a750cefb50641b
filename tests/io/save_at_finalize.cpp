// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A program that ends while a checkpoint is still being written: the file is
// complete when MPI_Finalize has returned.
#include <mpi.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <filesystem>
#include <kzero/kzero.hpp>
#include <string>

#include "io/checkpoint_file.hpp"

namespace {

void save(const std::filesystem::path& file) {
  kzero::ParameterSet model;
  model.add("p", {1 << 20});
  kzero::ShardedOptimizer optimizer(kzero::make_communicator(MPI_COMM_WORLD),
                                    model, {});
  optimizer.step();
  kzero::save_checkpoint_async(optimizer, file, {.latest = false});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int number = static_cast<int>(getpid());
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      ("kzero_test_finalize_" + std::to_string(number) + ".h5");
  Kokkos::initialize(argc, argv);
  save(file);
  Kokkos::finalize();
  const bool early = std::filesystem::exists(file);
  MPI_Finalize();
  if (rank != 0) return 0;
  int failures = early ? 1 : 0;
  try {
    const kzero::detail::CheckpointReader reader(file);
    reader.verify_arrays();
    if (reader.layout().content.step != 1) ++failures;
  } catch (const std::exception& error) {
    std::printf("wrong: %s\n", error.what());
    ++failures;
  }
  std::filesystem::remove(file);
  return failures;
}
