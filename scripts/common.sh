# shellcheck shell=bash disable=SC2034
# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

# What the scripts share; source it. Sets top, the checkout's folder.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${KZERO_CACHE:-$top/.cache}
jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)

say() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The launcher that the build found, so that it is the MPI of the library.
launcher() { # <build folder>
  sed -n 's/^MPIEXEC_EXECUTABLE:[^=]*=//p' "$1/CMakeCache.txt"
}
