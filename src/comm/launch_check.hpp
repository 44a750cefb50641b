// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Finds programs that were started by the launcher of another MPI: then each
// of P processes is rank 0 of 1.
#pragma once

#include <optional>
#include <string>

namespace kzero::detail {

/// For a communicator of one rank: a variable of a launcher that tells of more
/// processes, and what may be wrong; nothing when there is none.
std::optional<std::string> lonely_rank_warning();

}  // namespace kzero::detail
