// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A program that ends while a checkpoint is still being written: the file is
// complete when MPI_Finalize has returned, and at the end of one that has no
// MPI (argument without_mpi).
#include <mpi.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <kzero/kzero.hpp>
#include <memory>
#include <string>
#include <utility>

#include "io/checkpoint_file.hpp"

namespace {

void save(const std::filesystem::path& file,
          std::shared_ptr<kzero::Communicator> communicator) {
  kzero::ParameterSet model;
  model.add("p", {1 << 20});
  kzero::ShardedOptimizer optimizer(std::move(communicator), model, {});
  optimizer.step();
  kzero::save_checkpoint_async(optimizer, file, {.latest = false});
}

std::filesystem::path file_of(int number) {
  return std::filesystem::temp_directory_path() /
         ("kzero_test_finalize_" + std::to_string(number) + ".h5");
}

int problems_of(const std::filesystem::path& file) {
  int failures = 0;
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

int run_without_mpi(int argc, char** argv) {
  // Comes last.
  std::atexit([] { _exit(problems_of(file_of(static_cast<int>(getpid())))); });
  Kokkos::initialize(argc, argv);
  save(file_of(static_cast<int>(getpid())),
       kzero::make_communicator(MPI_COMM_NULL, {kzero::Backend::self}));
  Kokkos::finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return run_without_mpi(argc, argv);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int number = static_cast<int>(getpid());
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::filesystem::path file = file_of(number);
  Kokkos::initialize(argc, argv);
  save(file, kzero::make_communicator(MPI_COMM_WORLD));
  Kokkos::finalize();
  const bool early = std::filesystem::exists(file);
  MPI_Finalize();
  if (rank != 0) return 0;
  return problems_of(file) + (early ? 1 : 0);
}
