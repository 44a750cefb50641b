// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <kzero/version.hpp>
#include <string>
#include <string_view>

#include "core/message.hpp"
#include "kernels/kernels.hpp"

namespace kzero {

namespace {

std::string compiler() {
#if defined(__clang__)
  return detail::concat("Clang ", __clang_major__, '.', __clang_minor__, '.',
                        __clang_patchlevel__);
#elif defined(__GNUC__)
  return detail::concat("GCC ", __GNUC__, '.', __GNUC_MINOR__, '.',
                        __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

std::string kokkos() {
  std::string text =
      detail::concat(KOKKOS_VERSION / 10000, '.', KOKKOS_VERSION / 100 % 100,
                     '.', KOKKOS_VERSION % 100, ", default execution space ",
                     Kokkos::DefaultExecutionSpace::name());
  constexpr std::string_view backends =
      ""
#if defined(KOKKOS_ENABLE_CUDA)
      " Cuda"
#endif
#if defined(KOKKOS_ENABLE_HIP)
      " HIP"
#endif
#if defined(KOKKOS_ENABLE_SYCL)
      " SYCL"
#endif
#if defined(KOKKOS_ENABLE_OPENMP)
      " OpenMP"
#endif
#if defined(KOKKOS_ENABLE_THREADS)
      " Threads"
#endif
#if defined(KOKKOS_ENABLE_SERIAL)
      " Serial"
#endif
      ;
  detail::append(text, detail::concat(", back ends", backends));
  return text;
}

/// First line only: some libraries go on for a page.
std::string mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
  const std::string_view all = text;
  std::string line(all.substr(0, all.find('\n')));
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

std::string hdf5() {
#if !KZERO_HAVE_HDF5
  return "off";
#elif defined(KZERO_HDF5_VERSION)
  return KZERO_HDF5_VERSION;
#else
  return "on";
#endif
}

}  // namespace

std::string build_information() {
  return detail::concat(
      "kzero: ", version(), "\ncompiler: ", compiler(), "\nKokkos: ", kokkos(),
      "\nMPI: ", mpi(), "\nHDF5: ", hdf5(),
      "\ninstruction set: ", detail::instruction_set_name(), '\n');
}

}  // namespace kzero
