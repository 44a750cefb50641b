# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# The target kzero::kzero: every source below src/, less what an option leaves
# out and what is built by itself.
include(GNUInstallDirs)
include(kzero_instruction_sets)

set(KZERO_HAVE_HDF5 0)
if(KZERO_ENABLE_HDF5)
  set(KZERO_HAVE_HDF5 1)
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/config.hpp.in"
               "${PROJECT_BINARY_DIR}/include/kzero/config.hpp" @ONLY)

file(GLOB_RECURSE kzero_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/*.cpp")
set(kzero_left_out "tools/|adapters/|kernels/host/host_kernels\\.cpp$")
if(NOT KZERO_ENABLE_HDF5)
  # What is left of io/ reads and writes texts.
  string(APPEND kzero_left_out
         "|io/(background_save|checkpoint_.*|direct_engine|element_types|hdf5_.*"
         "|image_driver|load_checkpoint|new_checkpoint|save_checkpoint|user_data)"
         "\\.cpp$")
endif()
list(FILTER kzero_sources EXCLUDE REGEX
     "^${PROJECT_SOURCE_DIR}/src/(${kzero_left_out})")

add_library(kzero ${kzero_sources})
add_library(kzero::kzero ALIAS kzero)
set_target_properties(kzero PROPERTIES VERSION ${PROJECT_VERSION}
                                       SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(kzero PUBLIC cxx_std_20)
target_include_directories(
  kzero
  PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
         "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
         "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_include_directories(kzero SYSTEM
                           PRIVATE "${KZERO_XXHASH_INCLUDE_DIR}"
                                   "${KZERO_JSON_INCLUDE_DIR}")
target_compile_definitions(kzero PUBLIC MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)
# The same bits from every compiler, instruction set and build type.
target_compile_options(kzero PRIVATE -ffp-contract=off)
kzero_set_warnings(kzero)
target_link_libraries(kzero PUBLIC Kokkos::kokkos MPI::MPI_CXX)
target_link_libraries(kzero PRIVATE BLAS::BLAS)
if(KZERO_ENABLE_HDF5)
  target_link_libraries(kzero PRIVATE HDF5::HDF5)
endif()
kzero_add_instruction_sets(kzero)
