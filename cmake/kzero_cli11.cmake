# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Finds CLI11, the command line of our programs: the target CLI11::CLI11. The
# library itself does not use it.
find_package(CLI11 2 CONFIG QUIET)
if(NOT TARGET CLI11::CLI11)
  find_path(KZERO_CLI11_INCLUDE_DIR CLI/CLI.hpp)
  mark_as_advanced(KZERO_CLI11_INCLUDE_DIR)
  if(NOT KZERO_CLI11_INCLUDE_DIR)
    message(
      FATAL_ERROR
        "KZERO_BUILD_TOOLS and KZERO_BUILD_BENCHMARKS need CLI11, and neither CLI11Config.cmake "
        "nor CLI/CLI.hpp was found: install it (libcli11-dev), or name the "
        "folder that CLI is in by -DKZERO_CLI11_INCLUDE_DIR=<folder>.")
  endif()
  add_library(CLI11::CLI11 INTERFACE IMPORTED)
  target_include_directories(CLI11::CLI11
                             INTERFACE "${KZERO_CLI11_INCLUDE_DIR}")
endif()
