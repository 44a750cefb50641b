// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <kzero/error.hpp>
#include <kzero/runtime.hpp>
#include <mutex>

#include "core/log.hpp"
#include "core/message.hpp"

namespace kzero {

namespace {

/// What initialize() has started and finalize() has to end.
struct Started {
  std::mutex mutex;
  bool mpi = false;
  bool kokkos = false;
  bool kokkos_ended = false;  // by finalize()
};

Started& started() {
  static Started instance;
  return instance;
}

void check_mpi_start(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError(detail::concat(function, " failed (code ", code,
                                          ": ", text,
                                          "): check how the job was launched"));
}

bool mpi_flag(int (*question)(int*), const char* function) {
  int flag = 0;
  check_mpi_start(question(&flag), function);
  return flag != 0;
}

bool kokkos_finalized() {
#if KOKKOS_VERSION >= 30700
  return Kokkos::is_finalized();
#else
  // Older ones do not tell; our own doing is known.
  return started().kokkos_ended && !Kokkos::is_initialized();
#endif
}

void refuse_finalized() {
  constexpr const char* problem =
      " is finalised already (expected not yet initialised, or in use): it "
      "cannot start twice in one process, so call kzero::initialize before";
  if (mpi_flag(MPI_Finalized, "MPI_Finalized"))
    throw InvalidArgument(detail::concat("MPI", problem));
  if (kokkos_finalized())
    throw InvalidArgument(detail::concat("Kokkos", problem));
}

void start_mpi(int* argc, char*** argv) {
  if (mpi_flag(MPI_Initialized, "MPI_Initialized")) return;
  int provided = MPI_THREAD_SINGLE;
  check_mpi_start(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided),
                  "MPI_Init_thread");
  started().mpi = true;
  if (provided < MPI_THREAD_MULTIPLE)
    detail::log(LogLevel::information,
                detail::concat("MPI provides thread level ", provided,
                               " (asked for MPI_THREAD_MULTIPLE, ",
                               MPI_THREAD_MULTIPLE, ')'));
}

}  // namespace

void initialize(int& argc, char**& argv) {
  const std::lock_guard lock(started().mutex);
  refuse_finalized();
  start_mpi(&argc, &argv);
  if (Kokkos::is_initialized()) return;
  Kokkos::initialize(argc, argv);
  started().kokkos = true;
}

void initialize() {
  const std::lock_guard lock(started().mutex);
  refuse_finalized();
  start_mpi(nullptr, nullptr);
  if (Kokkos::is_initialized()) return;
  Kokkos::initialize();
  started().kokkos = true;
}

void finalize() {
  const std::lock_guard lock(started().mutex);
  // The caller may have ended either by hand.
  if (started().kokkos && Kokkos::is_initialized()) {
    Kokkos::finalize();
    started().kokkos_ended = true;
  }
  started().kokkos = false;
  if (started().mpi && !mpi_flag(MPI_Finalized, "MPI_Finalized"))
    check_mpi_start(MPI_Finalize(), "MPI_Finalize");
  started().mpi = false;
}

}  // namespace kzero
