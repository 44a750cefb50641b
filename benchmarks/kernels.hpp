// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Cases K1 to K5 of the suite: the pass over a shard, on one rank.
#pragma once

namespace CLI {
class App;
}

namespace kzero::bench {

class Report;

/// K1: the update against a loop without arithmetic.
void add_kernels_roof(CLI::App& app, Report& report);
/// K2: one pass against one for each operation.
void add_kernels_fusion(CLI::App& app, Report& report);
/// K3: against optimizers of other libraries, where they are installed.
void add_kernels_peers(CLI::App& app, Report& report);
/// K4: many short segments against one.
void add_kernels_segments(CLI::App& app, Report& report);
/// K5: denormal moments against normal ones.
void add_kernels_denormals(CLI::App& app, Report& report);

}  // namespace kzero::bench
