// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Loops of a benchmark that are compiled for the widest vectors that the
// processor has, so that only the memory limits them.
#pragma once

#if defined(__x86_64__)
#define KZERO_BENCH_WIDEST \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KZERO_BENCH_WIDEST
#endif
