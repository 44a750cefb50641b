// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "probes.hpp"

#include "kernels/kernels.hpp"

namespace kzero::bench {

const Probes& probes() {
  const std::string_view set = detail::instruction_set_name();
#ifdef KZERO_HAVE_AVX512
  if (set == probes_avx512.name) return probes_avx512;
#endif
#ifdef KZERO_HAVE_AVX2
  if (set == probes_avx2.name) return probes_avx2;
#endif
  static_cast<void>(set);
  return probes_generic;
}

}  // namespace kzero::bench
