// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The subcommands of kzero. Each is a file of its own; it prints to standard
// output and sets the exit code.
#pragma once

namespace CLI {
class App;
}

namespace kzero::tools {

/// What the command answers.
enum ExitCode { in_order = 0, found_something = 1, cannot_tell = 2 };

struct Outcome {
  bool as_json = false;  // objects for programs, not text for people
  int code = in_order;
};

void add_list(CLI::App& app, Outcome& outcome);
void add_show(CLI::App& app, Outcome& outcome);
void add_verify(CLI::App& app, Outcome& outcome);
void add_diff(CLI::App& app, Outcome& outcome);
void add_convert(CLI::App& app, Outcome& outcome);
void add_plan(CLI::App& app, Outcome& outcome);

}  // namespace kzero::tools
