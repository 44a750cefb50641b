// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The world as a grid: data-parallel rows of model-parallel groups.
#pragma once

#include <mpi.h>

#include <chrono>
#include <kzero/kzero.hpp>
#include <memory>

namespace kzero::test {

/// Ranks r of the world: model-parallel rank r % width, data-parallel rank
/// r / width.
class Grid {
 public:
  explicit Grid(int width) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    data = split(rank % width, rank / width);
    model = split(rank / width, rank % width);
  }

  std::shared_ptr<Communicator> data;   // the same part of the model
  std::shared_ptr<Communicator> model;  // the same data

 private:
  static std::shared_ptr<Communicator> split(int color, int key) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &part);
    CommunicatorOptions options;
    options.timeout = std::chrono::seconds(30);
    auto communicator = make_communicator(part, options);
    MPI_Comm_free(&part);
    return communicator;
  }
};

}  // namespace kzero::test
