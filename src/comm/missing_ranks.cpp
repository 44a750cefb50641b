// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/missing_ranks.hpp"

#include <algorithm>

#include "core/message.hpp"

namespace kzero::detail {

std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t shown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), shown); ++i) {
    if (i > 0) text += ", ";
    append(text, ranks[i]);
  }
  if (ranks.size() > shown) {
    text += concat(" and ", ranks.size() - shown, " more");
  }
  return text;
}

std::string no_answer_from(const std::vector<int>& ranks, int peers) {
  return concat("no answer from ", list_of(ranks), " (", ranks.size(), " of ",
                counted(peers, "peer"), ")");
}

}  // namespace kzero::detail
