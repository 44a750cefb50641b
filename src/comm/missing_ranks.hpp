// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What every backend says of ranks that do not come.
#pragma once

#include <string>
#include <vector>

namespace kzero::detail {

inline constexpr const char* same_calls =
    ": does every rank make the same calls?";

/// "rank 3" or "ranks 1, 2, 5 and 40 more"; the ranks ascend.
std::string list_of(const std::vector<int>& ranks);

/// "no answer from rank 1 (1 of 3 peers)".
/// Where what a rank sends depends on others.
inline constexpr const char* may_wait_itself =
    ", which may itself wait for another rank";

std::string no_answer_from(const std::vector<int>& ranks, int peers);

}  // namespace kzero::detail
