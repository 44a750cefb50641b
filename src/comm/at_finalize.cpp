// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/at_finalize.hpp"

#include <mpi.h>

#include "comm/check_mpi.hpp"

namespace kzero::detail {
namespace {

using Call = void (*)();

int run(MPI_Comm, int, void* call, void*) {
  reinterpret_cast<Call>(call)();
  return MPI_SUCCESS;
}

}  // namespace

// MPI_Finalize begins with the attributes of MPI_COMM_SELF, the last first.
void call_at_finalize(Call call) {
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, run, &key, nullptr),
            "MPI_Comm_create_keyval");
  check_mpi(
      MPI_Comm_set_attr(MPI_COMM_SELF, key, reinterpret_cast<void*>(call)),
      "MPI_Comm_set_attr");
  check_mpi(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
}

}  // namespace kzero::detail
