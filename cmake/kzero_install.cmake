# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# What is installed: library, headers, the CMake package and kzero.pc. All of it
# can be moved to another prefix.
include(CMakePackageConfigHelpers)
include(kzero_pkgconfig)

set(kzero_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/kzero")

install(TARGETS kzero EXPORT kzeroTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/kzero"
                  "${PROJECT_BINARY_DIR}/include/kzero"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(EXPORT kzeroTargets NAMESPACE kzero::
        DESTINATION "${kzero_package_folder}")

# Only a static library passes BLAS and HDF5 on to whoever links it.
set(kzero_needs_blas TRUE)
if(BUILD_SHARED_LIBS)
  set(kzero_needs_blas FALSE)
endif()
set(kzero_needs_hdf5 FALSE)
if(KZERO_ENABLE_HDF5 AND NOT BUILD_SHARED_LIBS)
  set(kzero_needs_hdf5 TRUE)
endif()
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/kzeroConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/kzeroConfig.cmake"
  INSTALL_DESTINATION "${kzero_package_folder}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/package/kzeroConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/kzeroConfig.cmake"
              "${PROJECT_BINARY_DIR}/package/kzeroConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/kzero_mpi.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/kzero_kokkos.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/kzero_blas.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/kzero_hdf5.cmake"
        DESTINATION "${kzero_package_folder}")

kzero_write_pkgconfig("${PROJECT_BINARY_DIR}/package/kzero.pc")
install(FILES "${PROJECT_BINARY_DIR}/package/kzero.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
