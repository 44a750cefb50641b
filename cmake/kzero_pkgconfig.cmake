# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Writes kzero.pc. Kokkos, BLAS and HDF5 are spelled out, since Debian's Kokkos
# has no .pc file and BLAS goes by many names; MPI is required by the name of its own .pc file where it has one.

# Appends to the lists <cflags> and <libs> what a target passes on to those who
# link it, its own dependencies included.
function(kzero_flatten_target target cflags libs)
  set(out_cflags ${${cflags}})
  set(out_libs ${${libs}})
  get_target_property(target_type ${target} TYPE)

  if(NOT target_type STREQUAL "INTERFACE_LIBRARY")
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    set(location "")
    foreach(suffix IN ITEMS "" _RELEASE _NONE _NOCONFIG _RELWITHDEBINFO _DEBUG)
      if(NOT location)
        get_target_property(location ${target} IMPORTED_LOCATION${suffix})
      endif()
    endforeach()
    if(location)
      # libx.so.1.2 -> libx.so, where a developer's link is there.
      string(REGEX REPLACE "\\.so\\.[0-9.]+$" ".so" link "${location}")
      if(EXISTS "${link}")
        set(location "${link}")
      endif()
      list(APPEND out_libs "${location}")
    endif()
  endif()

  foreach(property IN ITEMS INCLUDE_DIRECTORIES SYSTEM_INCLUDE_DIRECTORIES
                            COMPILE_DEFINITIONS COMPILE_OPTIONS LINK_OPTIONS
                            LINK_LIBRARIES)
    get_target_property(values ${target} INTERFACE_${property})
    foreach(value IN LISTS values)
      # What is only meant for C++ or for the linker is meant for us.
      string(REGEX REPLACE "\\$<\\$<COMPILE_LANGUAGE:CXX>:([^<>]*)>" "\\1"
                           value "${value}")
      string(REGEX REPLACE "\\$<\\$<LINK_LANGUAGE:CXX>:([^<>]*)>" "\\1"
                           value "${value}")
      string(REGEX REPLACE "\\$<LINK_ONLY:([^<>]*)>" "\\1" value "${value}")
      if(value STREQUAL "" OR value MATCHES "\\$<|NOTFOUND$")
        continue()
      elseif(property MATCHES "INCLUDE_DIRECTORIES")
        list(APPEND out_cflags "-I${value}")
      elseif(property STREQUAL "COMPILE_DEFINITIONS")
        list(APPEND out_cflags "-D${value}")
      elseif(property STREQUAL "COMPILE_OPTIONS")
        list(APPEND out_cflags "${value}")
      elseif(property STREQUAL "LINK_OPTIONS")
        list(APPEND out_libs "${value}")
      elseif(TARGET ${value})
        kzero_flatten_target(${value} out_cflags out_libs)
      elseif(value MATCHES "^[-/]")
        list(APPEND out_libs "${value}")
      else()
        list(APPEND out_libs "-l${value}")
      endif()
    endforeach()
  endforeach()
  set(${cflags} ${out_cflags} PARENT_SCOPE)
  set(${libs} ${out_libs} PARENT_SCOPE)
endfunction()

# Sets <result> to the .pc file of the MPI in use, empty when there is none.
function(kzero_mpi_module result)
  set(${result} "" PARENT_SCOPE)
  find_package(PkgConfig QUIET)
  if(NOT PKG_CONFIG_FOUND)
    return()
  endif()
  foreach(module IN ITEMS mpich ompi-c mpi)
    pkg_check_modules(kzero_pc_${module} QUIET ${module})
    foreach(folder IN LISTS kzero_pc_${module}_INCLUDE_DIRS)
      if(folder IN_LIST MPI_CXX_INCLUDE_DIRS)
        set(${result} ${module} PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

function(kzero_write_pkgconfig file)
  set(flags "-DMPICH_SKIP_MPICXX" "-DOMPI_SKIP_MPICXX")
  set(libraries "")
  kzero_flatten_target(Kokkos::kokkos flags libraries)
  kzero_mpi_module(kzero_pc_requires)
  if(NOT kzero_pc_requires)
    kzero_flatten_target(MPI::MPI_CXX flags libraries)
  endif()
  set(unused "")
  if(NOT BUILD_SHARED_LIBS)
    kzero_flatten_target(BLAS::BLAS unused libraries)
  endif()
  if(KZERO_ENABLE_HDF5 AND NOT BUILD_SHARED_LIBS)
    kzero_flatten_target(HDF5::HDF5 unused libraries)
  endif()
  list(REMOVE_DUPLICATES flags)
  # Of a library named twice the last place counts: after all that need it.
  list(REVERSE libraries)
  list(REMOVE_DUPLICATES libraries)
  list(REVERSE libraries)
  list(FILTER libraries EXCLUDE REGEX "^-D") # Kokkos marks its target so
  list(FILTER flags EXCLUDE REGEX "^-I/usr/include$")
  list(JOIN flags " " kzero_pc_cflags)
  list(JOIN libraries " " kzero_pc_libs)
  # From the folder of kzero.pc up to the prefix.
  file(RELATIVE_PATH kzero_pc_up
       "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(REGEX REPLACE "/$" "" kzero_pc_up "${kzero_pc_up}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/kzero.pc.in" "${file}" @ONLY)
endfunction()
