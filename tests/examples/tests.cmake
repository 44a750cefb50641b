# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Tests of the examples, included by tests/CMakeLists.txt: GoogleTest programs
# on the parts of 02_digits, then the programs as users start them.
set(digits_tests accuracy batches buckets data options reference resume)
if(KZERO_BUILD_EXAMPLES AND KZERO_ENABLE_HDF5)
  kzero_add_test(examples/test_digits_batches RANKS 0)
  kzero_add_test(examples/test_digits_options RANKS 0)
  kzero_add_test(examples/test_digits_data RANKS 1 3)
  kzero_add_test(examples/test_digits_reference RANKS 1 2 3 4)
  kzero_add_test(examples/test_digits_buckets RANKS 1 2 3 4)
  kzero_add_test(examples/test_digits_resume RANKS 1 2 3 4)
  # A whole training each: once a run of scripts/test is enough.
  kzero_add_test(examples/test_digits_accuracy RANKS 1 2 3 4 LABELS training)
  foreach(test IN LISTS digits_tests)
    target_link_libraries(examples_test_digits_${test} PRIVATE kzero_digits)
  endforeach()
else()
  foreach(test IN LISTS digits_tests)
    set_property(GLOBAL APPEND PROPERTY kzero_registered_tests
                                        examples/test_digits_${test})
  endforeach()
endif()

# kzero_add_program_test(<name> <ranks> <what it must print> <program> <arg>...)
function(kzero_add_program_test name ranks expected program)
  add_test(NAME examples/${name}
           COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                   ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${program}>
                   ${MPIEXEC_POSTFLAGS} ${ARGN})
  set(arg_TIMEOUT 60)
  set(arg_LABELS kokkos)
  set(layer examples)
  kzero_set_test_properties(examples/${name} ${ranks})
  set_tests_properties(examples/${name} PROPERTIES PASS_REGULAR_EXPRESSION
                                                   "${expected}")
endfunction()

if(KZERO_BUILD_EXAMPLES)
  kzero_add_program_test(
    01_hello 4 "y = (2\\.99[89]|3\\.00[0-2]) x . -(1\\.99[89]|2\\.00[0-2])\n"
    01_hello)
  kzero_add_program_test(
    04_bf16_gradients 4
    "float32: 6144 bytes [^\n]* 0\\.000\nbfloat16: 4608 bytes [^\n]* 0\\.00[0-9]\n"
    04_bf16_gradients)
endif()
if(KZERO_BUILD_EXAMPLES AND KZERO_ENABLE_HDF5)
  set(checkpoint "${CMAKE_CURRENT_BINARY_DIR}/02_digits.h5")
  kzero_add_program_test(
    02_digits_save 4 "epoch  10 of 10 .*held-out accuracy: 0\\.9" 02_digits
    --epochs 10 --checkpoint ${checkpoint})
  kzero_add_program_test(
    02_digits_resume 3 "epoch  20 of 20 .*held-out accuracy: 0\\.9[6-9]"
    02_digits --epochs 20 --checkpoint ${checkpoint} --resume)
  set_tests_properties(examples/02_digits_save PROPERTIES FIXTURES_SETUP
                                                          digits_checkpoint)
  set_tests_properties(examples/02_digits_resume PROPERTIES FIXTURES_REQUIRED
                                                            digits_checkpoint)
  # A scale that overflows at first: the metrics tell of the skipped steps.
  kzero_add_program_test(
    02_digits_float16 2 "\"skipped\": [1-9].*held-out accuracy: 0\\.9[5-9]"
    02_digits --dtype float16 --loss-scale dynamic:16777216 --epochs 20
    --metrics /dev/stdout)
  # Errors: printed once, by rank 0, and no hang.
  kzero_add_program_test(02_digits_wrong_option 3
                         "^02_digits: unknown option \"--bacth\", see --help\n$"
                         02_digits --bacth 64)
  kzero_add_program_test(
    02_digits_no_data 3 "^02_digits: data file nowhere.h5 does not ex[^\n]*\n$"
    02_digits --data nowhere.h5)
  kzero_add_program_test(02_digits_no_checkpoint 3
                         "^02_digits: [^\n]*nowhere.h5[^\n]*\n$" 02_digits
                         --checkpoint nowhere.h5 --resume)
  kzero_add_program_test(
    03_own_rule 3
    "\nstep 500: y = (2\\.9[5-9]|3\\.0[0-5]) x . -(1\\.9[5-9]|2\\.0[0-5])\n"
    03_own_rule)
endif()
