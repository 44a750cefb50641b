# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Finds libzip, with which the command kzero reads and writes npz: the target
# kzero_libzip. Not by libzip's own configuration, which in some distributions
# asks for programs that are in another package.
find_path(KZERO_LIBZIP_INCLUDE_DIR zip.h)
find_library(KZERO_LIBZIP_LIBRARY zip)
mark_as_advanced(KZERO_LIBZIP_INCLUDE_DIR KZERO_LIBZIP_LIBRARY)
# Other libraries have a zip.h too.
if(KZERO_LIBZIP_INCLUDE_DIR)
  file(STRINGS "${KZERO_LIBZIP_INCLUDE_DIR}/zip.h" kzero_libzip_is_there
       REGEX "zip_source_function" LIMIT_COUNT 1)
endif()
if(NOT kzero_libzip_is_there OR NOT KZERO_LIBZIP_LIBRARY)
  message(
    FATAL_ERROR
      "KZERO_BUILD_TOOLS needs libzip, and zip.h or the library was not found: "
      "install it (libzip-dev), or name them by -DKZERO_LIBZIP_INCLUDE_DIR=<folder> "
      "and -DKZERO_LIBZIP_LIBRARY=<file>.")
endif()
add_library(kzero_libzip INTERFACE)
target_include_directories(kzero_libzip SYSTEM
                           INTERFACE "${KZERO_LIBZIP_INCLUDE_DIR}")
target_link_libraries(kzero_libzip INTERFACE "${KZERO_LIBZIP_LIBRARY}")
