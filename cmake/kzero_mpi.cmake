# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Finds MPI; used by the build and by the installed package.
#
# On Debian other packages can turn mpicxx and mpiexec into Open MPI's, while
# HDF5 and the library are built with MPICH. Where the mpicxx that would be found
# has an MPICH of that name beside it (mpicxx.mpich), and the user named no MPI,
# the latter is taken. An MPI earlier in the PATH (a module) is left alone.

set(kzero_mpi_chosen FALSE)
foreach(name IN ITEMS MPI_HOME MPI_ROOT MPI_C_COMPILER MPI_CXX_COMPILER
                      MPIEXEC_EXECUTABLE MPI_EXECUTABLE_SUFFIX)
  if(DEFINED ${name} OR DEFINED ENV{${name}})
    set(kzero_mpi_chosen TRUE)
  endif()
endforeach()
if(NOT kzero_mpi_chosen)
  if(KZERO_MPI_CXX_COMPILER_HINT AND EXISTS "${KZERO_MPI_CXX_COMPILER_HINT}")
    # The installed package: the MPI that the library was built with.
    set(kzero_mpicxx "${KZERO_MPI_CXX_COMPILER_HINT}")
  else()
    find_program(kzero_mpicxx NAMES mpicxx mpicxx.mpich NO_CACHE)
    if(kzero_mpicxx)
      get_filename_component(kzero_mpi_folder "${kzero_mpicxx}" DIRECTORY)
      if(EXISTS "${kzero_mpi_folder}/mpicxx.mpich")
        set(kzero_mpicxx "${kzero_mpi_folder}/mpicxx.mpich")
      endif()
    endif()
  endif()
  if(kzero_mpicxx MATCHES "^(.*)/mpicxx\\.mpich$")
    set(MPI_CXX_COMPILER "${CMAKE_MATCH_1}/mpicxx.mpich"
        CACHE FILEPATH "MPI compiler for CXX")
    if(EXISTS "${CMAKE_MATCH_1}/mpicc.mpich")
      set(MPI_C_COMPILER "${CMAKE_MATCH_1}/mpicc.mpich"
          CACHE FILEPATH "MPI compiler for C")
    endif()
    if(EXISTS "${CMAKE_MATCH_1}/mpiexec.mpich")
      set(MPIEXEC_EXECUTABLE "${CMAKE_MATCH_1}/mpiexec.mpich"
          CACHE FILEPATH "Executable for running MPI programs")
    endif()
  elseif(KZERO_MPI_CXX_COMPILER_HINT AND kzero_mpicxx)
    set(MPI_CXX_COMPILER "${kzero_mpicxx}"
        CACHE FILEPATH "MPI compiler for CXX")
  endif()
endif()

# Only the C functions of MPI are used: the old C++ bindings stay out.
set(MPI_CXX_SKIP_MPICXX TRUE CACHE BOOL "Disable the MPI-2 C++ bindings")
find_package(MPI ${kzero_required} COMPONENTS CXX)
