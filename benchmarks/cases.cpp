// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "cases.hpp"

#include "kernels.hpp"
#include "overlap.hpp"
#include "rank_cases.hpp"

namespace kzero::bench {

// One line a case.
void add_cases(CLI::App& app, Report& report) {
  add_reduce_scatter(app, report);
  add_all_gather(app, report);
  add_barrier(app, report);
  add_small_messages(app, report);
  add_step(app, report);
  add_memory(app, report);
  add_checkpoint(app, report);
  add_set_up(app, report);
  add_kernels_roof(app, report);
  add_kernels_fusion(app, report);
  add_kernels_peers(app, report);
  add_kernels_segments(app, report);
  add_kernels_denormals(app, report);
  add_overlap(app, report);
}

}  // namespace kzero::bench
