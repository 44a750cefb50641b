// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "cases.hpp"

#include "kernels.hpp"
#include "overlap.hpp"

namespace kzero::bench {

// One line a case.
void add_cases(CLI::App& app, Report& report) {
  add_kernels_roof(app, report);
  add_kernels_fusion(app, report);
  add_kernels_peers(app, report);
  add_kernels_segments(app, report);
  add_kernels_denormals(app, report);
  add_overlap(app, report);
}

}  // namespace kzero::bench
