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
set(build "${folder}/build")
set(program "${build}/hello")
set(configure
    "${CMAKE_COMMAND}" -S "${folder}/source" -B "${folder}/build" -G
    "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    -DCMAKE_BUILD_TYPE=Release)

if(MODE STREQUAL "find_package")
  run(${configure} "-DCMAKE_PREFIX_PATH=${prefix}"
      "-DWITH_CHECKPOINTS=${WITH_HDF5}")
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

# From the build tree or the moved prefix (a shared library is found there by
# the environment).
set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}:$ENV{LD_LIBRARY_PATH}")
function(run_on ranks program pattern)
  execute_process(
    COMMAND "${MPIEXEC}" "${NUMPROC_FLAG}" ${ranks} "${program}"
    WORKING_DIRECTORY "${build}" COMMAND_ECHO STDOUT
    OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "${output}")
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "the output does not match ${pattern}")
  endif()
  set(first "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set(second "${CMAKE_MATCH_2}" PARENT_SCOPE)
endfunction()

foreach(ranks IN ITEMS 2 3 4)
  run_on(${ranks} "${program}"
         "^y = (2\\.99[89]|3\\.00[0-2]) x \\+ -(1\\.99[89]|2\\.00[0-2])\n$")
endforeach()
if(MODE STREQUAL "pkg_config")
  return()
endif()
foreach(ranks RANGE 1 5)
  run_on(${ranks} "${build}/own_views" "^0 wrong elements\n$")
endforeach()
if(NOT WITH_HDF5 OR MODE STREQUAL "add_subdirectory")
  return()
endif()
# The loss falls at least fourfold, and overlap changes no bit.
foreach(ranks RANGE 1 5)
  run_on(${ranks} "${build}/overlap"
         "step 0 loss ([^ ]*) .*step 199 loss ([^ ]*) ")
  execute_process(
    COMMAND "${PYTHON}" -c "exit(not 4 * ${second} < ${first})"
                  COMMAND_ERROR_IS_FATAL ANY)
  run_on(${ranks} "${build}/overlap_at_step" "step 199 loss")
  if(H5DIFF)
    run("${H5DIFF}" "${build}/overlap.h5" "${build}/overlap_at_step.h5"
        /parameters)
  endif()
endforeach()
