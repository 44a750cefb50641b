// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What tests ask MPI for beside the communicator under test.
#pragma once

#include <mpi.h>

namespace kzero::test {

/// A communicator of the test's own.
class OwnComm {
 public:
  /// A duplicate of all ranks.
  OwnComm() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }
  /// The part of all ranks with this rank's color, ordered by key.
  OwnComm(int color, int key) {
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm_);
  }
  ~OwnComm() { MPI_Comm_free(&comm_); }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;

  operator MPI_Comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

}  // namespace kzero::test
