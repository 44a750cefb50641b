// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What ranks tell one another when they make a communicator.
#pragma once

#include <array>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <string>
#include <vector>

namespace kzero::detail {

using Figures = std::array<std::int64_t, 3>;

/// Every rank's figures, by rank. Throws InvalidArgument on every rank when any
/// has a problem (in words, empty for none), with that of the lowest one.
/// Collective.
std::vector<Figures> exchange_figures(Communicator& communicator,
                                      const Figures& mine,
                                      const std::string& problem);

}  // namespace kzero::detail
