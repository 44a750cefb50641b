# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Finds HDF5's C library, after MPI; used by the build and by the installed
# package. A parallel HDF5 is preferred, a serial one serves as well.

set(HDF5_PREFER_PARALLEL ON)
set(kzero_hdf5_chosen FALSE)
foreach(name IN ITEMS HDF5_ROOT HDF5_DIR HDF5_C_COMPILER_EXECUTABLE)
  if(DEFINED ${name} OR DEFINED ENV{${name}})
    set(kzero_hdf5_chosen TRUE)
  endif()
endforeach()
if(NOT kzero_hdf5_chosen)
  # Debian keeps one HDF5 for each MPI: take the one that belongs to ours.
  if(KZERO_HDF5_COMPILER_HINT AND EXISTS "${KZERO_HDF5_COMPILER_HINT}")
    set(kzero_h5cc "${KZERO_HDF5_COMPILER_HINT}")
  elseif(MPI_CXX_COMPILER MATCHES "\\.(mpich|openmpi)$")
    find_program(kzero_h5cc NAMES "h5pcc.${CMAKE_MATCH_1}" NO_CACHE)
  endif()
  if(kzero_h5cc)
    set(HDF5_C_COMPILER_EXECUTABLE "${kzero_h5cc}"
        CACHE FILEPATH "HDF5 compiler for C")
  endif()
endif()
find_package(HDF5 ${kzero_required} COMPONENTS C)
