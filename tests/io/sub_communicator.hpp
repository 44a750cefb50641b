// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The first ranks of the job, as a job of their own.
#pragma once

#include <mpi.h>

#include <chrono>
#include <kzero/communicator.hpp>
#include <memory>

namespace kzero::test {

class SubCommunicator {
 public:
  /// Collective over all ranks of the job.
  explicit SubCommunicator(int ranks) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank,
                   &communicator_);
  }
  ~SubCommunicator() {
    if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
  }
  SubCommunicator(const SubCommunicator&) = delete;
  SubCommunicator& operator=(const SubCommunicator&) = delete;

  /// Whether this rank is one of them.
  bool member() const { return communicator_ != MPI_COMM_NULL; }
  MPI_Comm get() const { return communicator_; }
  std::shared_ptr<Communicator> make() const {
    CommunicatorOptions options;
    options.timeout = std::chrono::seconds(30);
    return make_communicator(communicator_, options);
  }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

}  // namespace kzero::test
