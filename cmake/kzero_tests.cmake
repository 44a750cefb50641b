# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# kzero_add_test(<layer>/test_<what> RANKS <n>... [MESSAGES <n>...]
#                [NODES <nodes>x<ranks>...] [TCP <nodes>x<ranks>...]
#                [TIMEOUT <seconds>] [LABELS <label>...] [NO_HDF5])
#
# One GoogleTest program from tests/<layer>/test_<what>.cpp, and one ctest test
# <layer>/test_<what>.<n> for each number of ranks. RANKS 0 is a serial test:
# neither MPI nor Kokkos is initialised. Ranks of one machine share memory where
# a test does not ask for another communicator; MESSAGES adds tests
# <name>.mpi.<n>, labelled "messages", that have mpi there, and NODES adds
# <name>.<nodes>x<ranks>, labelled "nodes", where so many ranks count as a node;
# TCP likewise <name>.tcp.<nodes>x<ranks>, with messages by TCP.
# Every test is labelled with its layer, and those above storage with "kokkos":
# another Kokkos can change what they see.
# "full" marks what is too long for the everyday run. Tests below io/ are built
# only with HDF5, but for those with NO_HDF5, which need none.
function(kzero_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_HDF5" "TIMEOUT"
                        "RANKS;MESSAGES;NODES;TCP;LABELS")
  if(NOT DEFINED arg_RANKS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kzero_add_test(${name}): give RANKS <n>... and nothing "
                        "unknown (got '${arg_UNPARSED_ARGUMENTS}')")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  set_property(GLOBAL APPEND PROPERTY kzero_registered_tests ${name})
  get_filename_component(layer ${name} DIRECTORY)
  if((layer STREQUAL "io" AND NOT KZERO_ENABLE_HDF5 AND NOT arg_NO_HDF5)
     OR (layer STREQUAL "tools" AND NOT TARGET kzero-command))
    return()
  endif()

  string(REPLACE "/" "_" target ${name})
  add_executable(${target} ${name}.cpp)
  add_dependencies(kzero_tests ${target})
  if(NOT layer MATCHES "^(core|layout|comm|kernels|benchmarks)$")
    add_dependencies(kzero_tests_kokkos ${target})
    list(APPEND arg_LABELS kokkos)
  endif()
  kzero_set_warnings(${target})
  # Same flags as the program whose precompiled header is used.
  set_target_properties(
    ${target}
    PROPERTIES OUTPUT_NAME ${name}
               RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
               POSITION_INDEPENDENT_CODE OFF
               UNITY_BUILD OFF)
  if(arg_RANKS STREQUAL "0")
    target_link_libraries(${target} PRIVATE kzero_test_base GTest::gtest_main)
    target_precompile_headers(${target} REUSE_FROM kzero_test_serial)
    add_test(NAME ${name} COMMAND ${target})
    kzero_set_test_properties(${name} 1)
    return()
  endif()

  target_link_libraries(${target} PRIVATE kzero_test_support)
  target_precompile_headers(${target} REUSE_FROM kzero_test_support)
  foreach(ranks IN LISTS arg_RANKS)
    kzero_add_run(${name}.${ranks} ${ranks})
  endforeach()
  foreach(ranks IN LISTS arg_MESSAGES)
    kzero_add_run_of_messages(${name}.mpi.${ranks} ${ranks})
  endforeach()
  foreach(nodes IN LISTS arg_NODES)
    kzero_add_run_on_nodes(${name}.${nodes} ${nodes})
  endforeach()
  foreach(nodes IN LISTS arg_TCP)
    kzero_add_run_on_nodes(${name}.tcp.${nodes} ${nodes})
    # What MPICH's transports understand, whichever it was built with.
    set_property(
      TEST ${name}.tcp.${nodes} APPEND
      PROPERTY ENVIRONMENT MPIR_CVAR_NOLOCAL=1 "UCX_TLS=tcp,self"
               UCX_NET_DEVICES=lo FI_PROVIDER=tcp FI_TCP_IFACE=lo
               KZERO_TEST_WITHOUT_FINALIZE=1)
  endforeach()
endfunction()

# kzero_add_program(<layer>/<name> RANKS <n>... [MESSAGES <n>...]
#                   [CASES <argument>...] [LABELS <label>...])
#
# A program of its own from tests/<layer>/<name>.cpp that passes by its exit
# code (77: it is left out here), and one ctest test for each number of ranks,
# and for each argument where there are any.
function(kzero_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "RANKS;MESSAGES;CASES;LABELS")
  set(arg_TIMEOUT 60)
  get_filename_component(layer ${name} DIRECTORY)
  string(REPLACE "/" "_" target ${name})
  add_executable(${target} ${name}.cpp)
  kzero_set_warnings(${target})
  target_link_libraries(${target} PRIVATE kzero_test_base)
  add_dependencies(kzero_tests ${target})
  foreach(ranks IN LISTS arg_RANKS)
    if(NOT arg_CASES)
      kzero_add_run(${name}.${ranks} ${ranks})
    endif()
    foreach(case IN LISTS arg_CASES)
      kzero_add_run(${name}.${case}.${ranks} ${ranks} ${case})
    endforeach()
  endforeach()
  foreach(ranks IN LISTS arg_MESSAGES)
    foreach(case IN LISTS arg_CASES)
      kzero_add_run_of_messages(${name}.mpi.${case}.${ranks} ${ranks} ${case})
    endforeach()
  endforeach()
endfunction()

# kzero_add_run(<test> <ranks> [<argument>]): one ctest test of the program that
# the calling function has added, whose arguments it reads.
function(kzero_add_run test ranks)
  add_test(NAME ${test}
           COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                   ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${target}> ${ARGN}
                   ${MPIEXEC_POSTFLAGS})
  kzero_set_test_properties(${test} ${ranks})
endfunction()

# Likewise, with mpi where the program asks for no other communicator.
function(kzero_add_run_of_messages test ranks)
  list(APPEND arg_LABELS messages)
  kzero_add_run(${test} ${ranks} ${ARGN})
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT KZERO_BACKEND=mpi)
endfunction()

# kzero_add_run_on_nodes(<test> <nodes>x<ranks>)
function(kzero_add_run_on_nodes test nodes)
  string(REPLACE "x" ";" sizes ${nodes})
  list(GET sizes 0 count)
  list(GET sizes 1 size)
  math(EXPR ranks "${count} * ${size}")
  list(APPEND arg_LABELS nodes)
  kzero_add_run(${test} ${ranks})
  set_property(TEST ${test} APPEND
               PROPERTY ENVIRONMENT KZERO_RANKS_PER_NODE=${size})
endfunction()

# Properties of one test of these functions, whose arguments it reads.
function(kzero_set_test_properties test ranks)
  if(ranks GREATER 2)
    set(processors 2)
  else()
    set(processors ${ranks})
  endif()
  set(suppressions "${PROJECT_SOURCE_DIR}/tests/support/leaks.supp")
  set_tests_properties(
    ${test}
    PROPERTIES
      PROCESSORS ${processors}
      TIMEOUT ${arg_TIMEOUT}
      SKIP_RETURN_CODE 77
      LABELS "${layer};${arg_LABELS}"
      # More threads than cores: waiting ones must not spin.
      ENVIRONMENT
      "KZERO_TEST_RANKS=${ranks};KOKKOS_DISABLE_WARNINGS=1;OMP_NUM_THREADS=2;OMP_PROC_BIND=false;\
OMP_WAIT_POLICY=passive;ASAN_OPTIONS=allocator_may_return_null=1;\
LSAN_OPTIONS=suppressions=${suppressions}:print_suppressions=0")
endfunction()

# Every tests/**/test_*.cpp must be registered.
function(kzero_check_registered_tests)
  get_property(registered GLOBAL PROPERTY kzero_registered_tests)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}"
       "${CMAKE_CURRENT_SOURCE_DIR}/test_*.cpp")
  foreach(source IN LISTS sources)
    string(REGEX REPLACE "\\.cpp$" "" name ${source})
    if(NOT name IN_LIST registered)
      message(FATAL_ERROR "tests/${source} is never run: add "
                          "kzero_add_test(${name} RANKS ...) to "
                          "tests/CMakeLists.txt")
    endif()
  endforeach()
endfunction()
