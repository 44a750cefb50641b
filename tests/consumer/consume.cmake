# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Run by ctest, see CMakeLists.txt: MODE is install, find_package,
# add_subdirectory or pkg_config.
set(prefix "${WORK}/prefix")
set(folder "${WORK}/${MODE}")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed with ${result}: ${ARGV}")
  endif()
endfunction()

if(MODE STREQUAL "install")
  # Installed to one place and moved to another: the package must not mind.
  file(REMOVE_RECURSE "${prefix}" "${WORK}/first_prefix")
  run("${CMAKE_COMMAND}" --install "${KZERO_BUILD}" --prefix
      "${WORK}/first_prefix")
  file(RENAME "${WORK}/first_prefix" "${prefix}")
  return()
endif()

file(REMOVE_RECURSE "${folder}")
file(COPY "${KZERO_SOURCE}/tests/consumer/project/" DESTINATION "${folder}/source")
set(program "${folder}/build/hello")
set(configure
    "${CMAKE_COMMAND}" -S "${folder}/source" -B "${folder}/build" -G
    "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    -DCMAKE_BUILD_TYPE=Release)

if(MODE STREQUAL "find_package")
  run(${configure} "-DCMAKE_PREFIX_PATH=${prefix}")
  run("${CMAKE_COMMAND}" --build "${folder}/build" --parallel 2)
elseif(MODE STREQUAL "add_subdirectory")
  # The smallest kzero: without HDF5, and quick to compile.
  run(${configure}
      -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_COMPILER=${C_COMPILER}"
      "-DKZERO_SOURCE_DIR=${KZERO_SOURCE}" -DKZERO_ENABLE_HDF5=OFF
      "-DKokkos_DIR=${KOKKOS_DIR}")
  run("${CMAKE_COMMAND}" --build "${folder}/build" --parallel 2)
elseif(MODE STREQUAL "pkg_config")
  set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
  execute_process(COMMAND pkg-config --cflags --libs kzero
                  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  file(MAKE_DIRECTORY "${folder}/build")
  run("${CXX_COMPILER}" "${folder}/source/hello.cpp" -o "${program}" ${flags})
else()
  message(FATAL_ERROR "unknown MODE ${MODE}")
endif()

# On 2 to 4 ranks, from the build tree or the moved prefix (a shared library is found
# there by the environment).
set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}:$ENV{LD_LIBRARY_PATH}")
foreach(ranks IN ITEMS 2 3 4)
  execute_process(
    COMMAND "${MPIEXEC}" "${NUMPROC_FLAG}" ${ranks} "${program}" COMMAND_ECHO
            STDOUT
    OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "${output}")
  if(NOT output MATCHES "^y = (2\\.99[89]|3\\.00[0-2]) x \\+ -(1\\.99[89]|2\\.00[0-2])\n$")
    message(FATAL_ERROR "expected one line 'y = 3.000 x + -2.000', within 0.002")
  endif()
endforeach()
