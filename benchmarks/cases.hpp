// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The cases of kzero-bench. Each is a file of its own with one function, which
// adds a subcommand with its options; its callback measures and reports.
#pragma once

namespace CLI {
class App;
}

namespace kzero::bench {

class Report;

/// Every case. The report outlives the parsing of the command line, in which
/// the chosen case runs: on every rank.
void add_cases(CLI::App& app, Report& report);

}  // namespace kzero::bench
