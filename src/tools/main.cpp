// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The command kzero: what a checkpoint holds, and whether it is in order.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <kzero/version.hpp>
#include <string>

#include "tools/commands.hpp"

int main(int argc, char** argv) {
  using namespace kzero::tools;
  CLI::App app(
      "Looks into checkpoints of kzero.\n"
      "Exit codes: 0 in order, 1 damaged (verify) or different (diff), 2 "
      "cannot "
      "tell (no such file or name, a file that cannot be read, wrong usage)",
      "kzero");
  app.set_version_flag("--version", std::string(kzero::version()));
  app.require_subcommand(1);
  app.fallthrough();
  Outcome outcome;
  app.add_flag("--json", outcome.as_json, "One JSON object, for programs");
  add_list(app, outcome);
  add_show(app, outcome);
  add_verify(app, outcome);
  add_diff(app, outcome);
  add_convert(app, outcome);
  add_plan(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? in_order : cannot_tell;
  } catch (const std::exception& error) {
    std::cerr << "kzero: " << error.what() << std::endl;
    return cannot_tell;
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "kzero: standard output cannot be written" << std::endl;
    return cannot_tell;
  }
  return outcome.code;
}
