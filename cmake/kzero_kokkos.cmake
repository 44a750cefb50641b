# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Finds Kokkos 3.4.01 or newer with a host back end; used by the build and by
# the installed package. Sets kzero_kokkos_problem when what was found cannot be
# used (an error when kzero_required is REQUIRED).

set(kzero_kokkos_problem "")

# Kokkos before 4 turns the extensions off by force, with a warning.
if(NOT DEFINED CMAKE_CXX_EXTENSIONS)
  set(CMAKE_CXX_EXTENSIONS OFF)
endif()
find_package(Kokkos ${kzero_required} CONFIG HINTS ${KZERO_KOKKOS_DIR_HINT})

if(Kokkos_FOUND)
  # Debian's imported target names an include folder that does not exist; the
  # true one stands in Kokkos_INCLUDE_DIRS.
  get_target_property(kzero_folders Kokkos::kokkos
                      INTERFACE_INCLUDE_DIRECTORIES)
  set(kzero_good_folders "")
  set(kzero_missing_folders "")
  foreach(folder IN LISTS kzero_folders)
    if(folder MATCHES "\\$<" OR IS_DIRECTORY "${folder}")
      list(APPEND kzero_good_folders "${folder}")
    elseif(folder)
      list(APPEND kzero_missing_folders "${folder}")
    endif()
  endforeach()
  if(kzero_missing_folders)
    foreach(folder IN LISTS Kokkos_INCLUDE_DIRS)
      get_filename_component(folder "${folder}" REALPATH)
      if(IS_DIRECTORY "${folder}")
        list(APPEND kzero_good_folders "${folder}")
      endif()
    endforeach()
    list(REMOVE_DUPLICATES kzero_good_folders)
    set_target_properties(
      Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                "${kzero_good_folders}")
  endif()

  if(Kokkos_VERSION VERSION_LESS 3.4)
    set(kzero_kokkos_problem
        "Kokkos ${Kokkos_VERSION} was found, 3.4.01 or newer is needed. Point \
Kokkos_ROOT at a newer one.")
  endif()
  foreach(device IN ITEMS CUDA HIP SYCL OPENMPTARGET OPENACC)
    if(Kokkos_ENABLE_${device} OR "${device}" IN_LIST Kokkos_DEVICES)
      set(kzero_kokkos_problem
          "the Kokkos in ${Kokkos_DIR} has ${device} as its default execution \
space, and the GPU path is not in this version of kzero. Point Kokkos_ROOT at a \
Kokkos built for the host (Serial, OpenMP or Threads).")
    endif()
  endforeach()
  if(kzero_kokkos_problem AND kzero_required)
    message(FATAL_ERROR "kzero: ${kzero_kokkos_problem}")
  endif()
endif()
