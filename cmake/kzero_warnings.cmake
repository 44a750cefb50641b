# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Warnings for our own code. Other people's headers are system headers: they
# come from imported targets.
function(kzero_set_warnings target)
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                      $<$<BOOL:${KZERO_WARNINGS_AS_ERRORS}>:-Werror>)
  # GCC 12 reports overlaps and overflows inside std::string's own operator+
  # (GCC bugs 105329 and 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
     AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12
     AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    target_compile_options(${target} PRIVATE -Wno-restrict
                                             -Wno-stringop-overflow)
  endif()
endfunction()
