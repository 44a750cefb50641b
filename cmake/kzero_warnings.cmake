# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# Warnings for our own code. Other people's headers are system headers: they
# come from imported targets.
function(kzero_set_warnings target)
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                      $<$<BOOL:${KZERO_WARNINGS_AS_ERRORS}>:-Werror>)
endfunction()
