# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Finds a BLAS that counts with int, whose products rules for matrices take;
# used by the build and by the installed package. BLA_VENDOR chooses one.

if(NOT BLAS_FOUND OR NOT TARGET BLAS::BLAS)
  set(BLA_SIZEOF_INTEGER 4)
  find_package(BLAS ${kzero_required})
endif()
