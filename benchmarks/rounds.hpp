// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Rounds of a case: all candidates run in each of them, so that what slows the
// machine slows them all. Times are only compared within a round.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kzero::bench {

/// Seconds that a call takes.
template <class F>
double seconds_of(F&& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(end - begin).count();
}

/// Does its work once and answers the seconds that it took, by itself: on
/// ranks with a barrier before, and the slowest rank's.
using Candidate = std::function<double()>;

/// Seconds by candidate, of each the rounds in order. One more round comes
/// first and is forgotten. Every round begins with another candidate, with the
/// same one on every rank.
inline std::vector<std::vector<double>> alternate(
    int rounds, std::span<const Candidate> candidates) {
  std::vector<std::vector<double>> seconds(candidates.size());
  for (const Candidate& candidate : candidates) candidate();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::size_t which =
          (i + static_cast<std::size_t>(round)) % candidates.size();
      seconds[which].push_back(candidates[which]());
    }
  }
  return seconds;
}

/// a/b, round by round.
inline std::vector<double> ratios(std::span<const double> a,
                                  std::span<const double> b) {
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] / b[i]);
  return result;
}

}  // namespace kzero::bench
