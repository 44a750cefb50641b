// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/figures.hpp"

#include <cstddef>
#include <kzero/error.hpp>

#include "core/message.hpp"

namespace kzero::detail {

std::vector<Figures> exchange_figures(Communicator& communicator,
                                      const Figures& mine,
                                      const std::string& problem) {
  struct Finding {
    Figures figures{};
    std::int64_t problem_size = 0;
  };
  constexpr Subject subject{"making a communicator"};
  const auto size = static_cast<std::size_t>(communicator.size());
  const Finding own{mine, static_cast<std::int64_t>(problem.size())};
  std::vector<Finding> all(size);
  communicator.all_gather(&own, sizeof(own), all.data(), subject);

  std::vector<Figures> figures;
  figures.reserve(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    figures.push_back(all[rank].figures);
    if (all[rank].problem_size == 0) continue;
    std::string text = problem;
    text.resize(static_cast<std::size_t>(all[rank].problem_size));
    communicator.broadcast(text.data(), all[rank].problem_size,
                           static_cast<int>(rank), subject);
    throw InvalidArgument(concat(text, " (found on rank ", rank, ")"));
  }
  return figures;
}

}  // namespace kzero::detail
