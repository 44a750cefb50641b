// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case O1 of the suite: how much of the communication hides behind work.
#pragma once

namespace CLI {
class App;
}

namespace kzero::bench {

class Report;

void add_overlap(CLI::App& app, Report& report);

}  // namespace kzero::bench
