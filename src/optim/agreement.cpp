// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/agreement.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <limits>
#include <vector>

#include "core/hash.hpp"
#include "core/message.hpp"

namespace kzero::detail {
namespace {

struct Finding {
  std::uint64_t hash = 0;
  std::int64_t problem_size = 0;
};

std::vector<Finding> exchange(Communicator& communicator, Subject subject,
                              const Finding& finding) {
  std::vector<Finding> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&finding, sizeof finding, all.data(), subject);
  return all;
}

void throw_first_problem(Communicator& communicator, Subject subject,
                         const std::vector<Finding>& all,
                         const std::string& problem) {
  const auto first =
      std::find_if(all.begin(), all.end(),
                   [](const Finding& each) { return each.problem_size > 0; });
  if (first == all.end()) return;
  const int root = static_cast<int>(first - all.begin());
  const std::string text = broadcast_text(communicator, subject, problem, root);
  // What comes from another communicator says so already.
  constexpr std::string_view found = " (found on rank ";
  if (communicator.size() == 1 || text.find(found) != std::string::npos)
    throw InvalidArgument(text);
  throw InvalidArgument(concat(text, found, root, ")"));
}

// Rank 0's hash of every fact goes to all; the lowest rank that differs, at its
// first difference, tells. Called when the ranks are known to differ.
[[noreturn]] void throw_difference(Communicator& communicator, Subject subject,
                                   const FactSource& facts) {
  std::vector<std::uint64_t> mine;
  facts([&](std::string_view name, std::string_view value) {
    mine.push_back(hash(value, hash(name)));
  });
  auto count = static_cast<std::int64_t>(mine.size());
  communicator.broadcast(&count, sizeof count, 0, subject);
  std::vector<std::uint64_t> root_hashes = mine;
  root_hashes.resize(static_cast<std::size_t>(count));
  communicator.broadcast(root_hashes.data(),
                         count * static_cast<std::int64_t>(sizeof(mine[0])), 0,
                         subject);
  const auto [here, there] = std::mismatch(
      mine.begin(), mine.end(), root_hashes.begin(), root_hashes.end());
  constexpr auto none = std::numeric_limits<std::int64_t>::max();
  const bool differs = here != mine.end() || there != root_hashes.end();
  const auto place = static_cast<std::int64_t>(here - mine.begin());
  std::int64_t teller = differs ? communicator.rank() : none;
  communicator.all_reduce(std::span(&teller, 1), Extremum::minimum, subject);
  std::int64_t fact = communicator.rank() == teller ? place : 0;
  communicator.broadcast(&fact, sizeof fact, static_cast<int>(teller), subject);

  std::string text = "nothing more";
  std::int64_t index = 0;
  facts([&](std::string_view name, std::string_view value) {
    if (index++ == fact) text = concat(name, " = ", value);
  });
  const std::string root_text = broadcast_text(communicator, subject, text, 0);
  const std::string other_text =
      broadcast_text(communicator, subject, text, static_cast<int>(teller));
  throw InvalidArgument(concat(
      "ranks disagree (", subject.operation, "): rank 0 has ", root_text,
      ", rank ", teller, " has ", other_text, ": give every rank the same"));
}

}  // namespace

std::string broadcast_text(Communicator& communicator, Subject subject,
                           std::string text, int root) {
  auto size = static_cast<std::int64_t>(text.size());
  communicator.broadcast(&size, sizeof size, root, subject);
  text.resize(static_cast<std::size_t>(size));
  communicator.broadcast(text.data(), size, root, subject);
  return text;
}

void throw_if_any(Communicator& communicator, Subject subject,
                  const std::string& problem) {
  const Finding finding{0, static_cast<std::int64_t>(problem.size())};
  throw_first_problem(communicator, subject,
                      exchange(communicator, subject, finding), problem);
}

void require_agreement(Communicator& communicator, Subject subject,
                       const FactSource& facts, const std::string& problem) {
  Finding finding{0, static_cast<std::int64_t>(problem.size())};
  facts([&](std::string_view name, std::string_view value) {
    finding.hash = hash(value, hash(name, finding.hash));
  });
  const std::vector<Finding> all = exchange(communicator, subject, finding);
  throw_first_problem(communicator, subject, all, problem);
  const bool equal = std::all_of(
      all.begin(), all.end(),
      [&](const Finding& each) { return each.hash == all.front().hash; });
  if (!equal) throw_difference(communicator, subject, facts);
}

}  // namespace kzero::detail
