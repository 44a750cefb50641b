// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What tests ask MPI for beside the communicator under test.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

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

/// Every rank exchanges a message with every other one. Whoever leaves it has
/// taken in what the others sent before, wanted or not. For tests that ask what
/// was sent, and for a rank that has to wait until the others have failed.
inline void meet(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<MPI_Request> requests;
  std::vector<char> received(static_cast<std::size_t>(size));
  const char sent = 0;
  for (int peer = 0; peer < size; ++peer) {
    MPI_Irecv(&received[static_cast<std::size_t>(peer)], 1, MPI_CHAR, peer, 1,
              comm, &requests.emplace_back());
    MPI_Isend(&sent, 1, MPI_CHAR, peer, 1, comm, &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(),
              MPI_STATUSES_IGNORE);
}

}  // namespace kzero::test
