// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Markers for functions that run on the host and inside device kernels.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define KZERO_FUNCTION __host__ __device__ __forceinline__
#else
// Always inlined, so that a copy compiled for a wider instruction set can
// never be the one that the linker keeps for everybody.
#define KZERO_FUNCTION inline __attribute__((always_inline))
#endif
