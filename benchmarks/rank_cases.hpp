// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The cases that run on ranks: communication, a whole step, memory,
// checkpoints, set-up.
// Each is a file of its own.
#pragma once

namespace CLI {
class App;
}

namespace kzero::bench {

class Report;

void add_reduce_scatter(CLI::App& app, Report& report);  // C1, C3
void add_all_gather(CLI::App& app, Report& report);      // C2
void add_barrier(CLI::App& app, Report& report);         // C3
void add_small_messages(CLI::App& app, Report& report);  // C4
void add_step(CLI::App& app, Report& report);            // S1
void add_memory(CLI::App& app, Report& report);          // M1
void add_checkpoint(CLI::App& app, Report& report);      // H1, H2, H3
void add_set_up(CLI::App& app, Report& report);          // U1

}  // namespace kzero::bench
