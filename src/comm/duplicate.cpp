// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/duplicate.hpp"

#include <kzero/error.hpp>
#include <memory>
#include <thread>

#include "comm/aligned_memory.hpp"
#include "comm/all_progress.hpp"
#include "comm/check_mpi.hpp"
#include "comm/health.hpp"
#include "comm/wait_clock.hpp"
#include "core/message.hpp"

namespace kzero::detail {

MPI_Comm duplicate(MPI_Comm communicator, std::chrono::milliseconds timeout,
                   const Subject& subject, const char* function) {
  int rank = 0;
  int size = 0;
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");

  // On the heap, because MPI writes it when the last rank comes, which may be
  // after this function has given up.
  auto duplicate = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(communicator, duplicate.get(), &request),
            "MPI_Comm_idup");
  try {
    WaitClock clock(timeout);
    int done = 0;
    while (true) {
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) break;
      if (clock.expired()) {
        throw CommunicationError(concat(
            name_of(subject), " timed out after ", clock.text(), " on rank ",
            rank, " of ", size, ": does every rank of the communicator call ",
            function, "?"));
      }
      let_all_go_on();
      std::this_thread::yield();
    }
  } catch (...) {
    leak(duplicate.release());
    throw;
  }
  check_mpi(MPI_Comm_set_errhandler(*duplicate, MPI_ERRORS_RETURN),
            "MPI_Comm_set_errhandler");
  return *duplicate;
}

}  // namespace kzero::detail
