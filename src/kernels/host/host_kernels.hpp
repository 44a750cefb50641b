// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The tables of the instruction sets. Which ones exist is the build's choice
// (KZERO_HAVE_AVX2, KZERO_HAVE_AVX512).
#pragma once

#include "kernels/kernels.hpp"

namespace kzero::detail {

extern const HostKernels host_kernels_generic;
extern const HostKernels host_kernels_avx2;
extern const HostKernels host_kernels_avx512;

}  // namespace kzero::detail

#ifdef KZERO_INSTRUCTION_SET
#define KZERO_CONCAT_(a, b) a##b
#define KZERO_CONCAT(a, b) KZERO_CONCAT_(a, b)
#define KZERO_STRING_(a) #a
#define KZERO_STRING(a) KZERO_STRING_(a)
#define KZERO_HOST_KERNELS KZERO_CONCAT(host_kernels_, KZERO_INSTRUCTION_SET)
#define KZERO_INSTRUCTION_SET_NAME KZERO_STRING(KZERO_INSTRUCTION_SET)
#endif
