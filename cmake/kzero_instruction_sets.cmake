# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# The host kernels, compiled once for each instruction set; the library chooses
# at run time. The sources see neither Kokkos nor MPI. KZERO_INSTRUCTION_SET is
# generic, avx2 or avx512; the library learns what it has by KZERO_HAVE_AVX2 and
# KZERO_HAVE_AVX512. No fused multiply-add anywhere: the same bits come from each.
# source: where another target than the library has kernels of its own.
function(kzero_add_instruction_sets library)
  set(source "${PROJECT_SOURCE_DIR}/src/kernels/host/host_kernels.cpp")
  if(ARGC GREATER 1)
    set(source "${ARGV1}")
  endif()
  if(NOT EXISTS "${source}")
    message(FATAL_ERROR "kzero: ${source} is missing")
  endif()
  set(sets generic)
  set(flags_generic "")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$"
     AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    list(APPEND sets avx2 avx512)
    set(flags_avx2 -mavx2 -mf16c)
    set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mf16c
                     -mprefer-vector-width=512)
  endif()

  foreach(set IN LISTS sets)
    set(target ${library}_kernels_${set})
    add_library(${target} OBJECT "${source}")
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_compile_definitions(${target} PRIVATE KZERO_INSTRUCTION_SET=${set})
    target_include_directories(
      ${target} PRIVATE "${PROJECT_SOURCE_DIR}/include"
                        "${PROJECT_BINARY_DIR}/include"
                        "${PROJECT_SOURCE_DIR}/src")
    # Vectors are passed between functions of one file alone: no ABI matters.
    target_compile_options(
      ${target}
      PRIVATE ${flags_${set}} $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno
              -fno-trapping-math -ffp-contract=off -Wno-psabi)
    if(KZERO_BUILD_FUZZER)
      # They parse nothing, and take many minutes to be instrumented.
      target_compile_options(${target} PRIVATE -fno-sanitize=all)
    endif()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                               UNITY_BUILD OFF)
    kzero_set_warnings(${target})
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${target}>)
    if(NOT set STREQUAL "generic")
      string(TOUPPER ${set} name)
      target_compile_definitions(${library} PRIVATE KZERO_HAVE_${name})
    endif()
  endforeach()
  set(kzero_instruction_sets ${sets} PARENT_SCOPE)
endfunction()
