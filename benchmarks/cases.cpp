// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "cases.hpp"

namespace kzero::bench {

// One line a case; there is none yet.
void add_cases([[maybe_unused]] CLI::App& app,
               [[maybe_unused]] Report& report) {}

}  // namespace kzero::bench
