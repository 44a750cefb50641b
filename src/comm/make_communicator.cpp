// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <limits>
#include <optional>
#include <string>

#include "comm/check_mpi.hpp"
#include "comm/duplicate.hpp"
#include "comm/launch_check.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/self_communicator.hpp"
#include "core/log.hpp"
#include "core/message.hpp"

namespace kzero {

namespace {

using detail::check_mpi;
using detail::concat;

void check_options(const CommunicatorOptions& options) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (options.message_bytes < 1 || options.message_bytes > most) {
    throw InvalidArgument(concat("message_bytes is ", options.message_bytes,
                                 ": give 1 to ", most));
  }
  if (options.timeout.count() < 1) {
    throw InvalidArgument(concat("the timeout of a communicator is ",
                                 options.timeout.count(),
                                 " ms: give 1 ms or more"));
  }
}

/// Throws unless MPI can be called.
void require_mpi() {
  int initialized = 0;
  int finalized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) {
    throw InvalidArgument(
        "make_communicator before MPI is initialised: call MPI_Init_thread or "
        "kzero::initialize first (or choose backend self, which needs no MPI)");
  }
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  if (finalized != 0) {
    throw InvalidArgument(
        "make_communicator after MPI_Finalize: make it before, and let "
        "MPI_Finalize be the last call");
  }
}

bool mpi_is_usable() {
  int initialized = 0;
  int finalized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  return initialized != 0 && finalized == 0;
}

/// Ranks of the given communicator. Throws InvalidArgument unless it is one
/// that can be used.
int ranks_of(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL) {
    throw InvalidArgument(
        "make_communicator of MPI_COMM_NULL: ranks that are in no group do "
        "not call it");
  }
  int inter = 0;
  check_mpi(MPI_Comm_test_inter(communicator, &inter), "MPI_Comm_test_inter");
  if (inter != 0) {
    throw InvalidArgument(
        "make_communicator of an intercommunicator: give an "
        "intracommunicator (MPI_Intercomm_merge makes one)");
  }
  int size = 0;
  check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  return size;
}

}  // namespace

std::shared_ptr<Communicator> make_communicator(MPI_Comm communicator,
                                                CommunicatorOptions options) {
  check_options(options);
  if (options.backend == Backend::self && !mpi_is_usable()) {
    return std::make_shared<detail::SelfCommunicator>(options.timeout,
                                                      " (chosen by option)");
  }
  require_mpi();
  const int ranks = ranks_of(communicator);
  if (options.backend == Backend::self) {
    if (ranks > 1) {
      throw InvalidArgument(
          concat("backend self is for one rank, the communicator has ", ranks,
                 ": choose backend automatic or mpi, or give MPI_COMM_SELF"));
    }
    return std::make_shared<detail::SelfCommunicator>(options.timeout,
                                                      " (chosen by option)");
  }

  std::string choice =
      options.backend == Backend::mpi ? " (chosen by option)" : "";
  if (ranks == 1) {
    if (options.backend == Backend::automatic) {
      choice = " (the communicator has one rank)";
    }
    if (const std::optional warning = detail::lonely_rank_warning()) {
      detail::log(LogLevel::warning, *warning);
      choice += concat("; warning: ", *warning);
    }
    if (options.backend == Backend::automatic) {
      return std::make_shared<detail::SelfCommunicator>(options.timeout,
                                                        std::move(choice));
    }
  }
  return std::make_shared<detail::MpiCommunicator>(
      detail::duplicate(communicator, options.timeout), options,
      std::move(choice));
}

}  // namespace kzero
