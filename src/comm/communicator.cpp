// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Sums and extrema over the ranks, of few numbers: all of them go to every
// rank, which adds them up itself, so that the order is the same everywhere.
#include <algorithm>
#include <cstring>
#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <vector>

#include "comm/health.hpp"
#include "core/message.hpp"

namespace kzero {

namespace {

/// values of all ranks, combined in rank order.
template <class T, class Combine>
void all_reduce_with(Communicator& communicator, std::span<T> values,
                     Subject subject, Combine combine) {
  // Many ranks times many values are taken in parts of about 1 MiB.
  constexpr std::size_t most_values = (std::size_t{1} << 20) / sizeof(T);
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const std::size_t part = std::max<std::size_t>(1, most_values / ranks);
  // Kept for the next call; each thread has its own.
  thread_local std::vector<T> all;
  do {
    const std::span<T> now = values.first(std::min(part, values.size()));
    if (all.size() < ranks * now.size()) all.resize(ranks * now.size());
    communicator.all_gather(now.data(),
                            static_cast<std::int64_t>(now.size_bytes()),
                            all.data(), subject);
    for (std::size_t i = 0; i < now.size(); ++i) {
      T result = all[i];
      for (std::size_t rank = 1; rank < ranks; ++rank) {
        result = combine(result, all[rank * now.size() + i]);
      }
      now[i] = result;
    }
    values = values.subspan(now.size());
  } while (!values.empty());
}

constexpr auto add = [](double a, double b) { return a + b; };
// Modulo 2^64.
constexpr auto add_integers = [](std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                   static_cast<std::uint64_t>(b));
};

}  // namespace

void Communicator::all_reduce_sum(std::span<double> values, Subject subject) {
  all_reduce_with(*this, values, subject, add);
}

void Communicator::all_reduce_sum(std::span<std::int64_t> values,
                                  Subject subject) {
  all_reduce_with(*this, values, subject, add_integers);
}

void Communicator::all_reduce(std::span<std::int64_t> values, Extremum extremum,
                              Subject subject) {
  if (extremum != Extremum::minimum && extremum != Extremum::maximum) {
    throw InvalidArgument(detail::concat(
        detail::name_of(subject),
        " refused: unknown Extremum (expected a code from 0 to 1, got ",
        static_cast<int>(extremum), "): use an enumerator"));
  }
  all_reduce_with(
      *this, values, subject, [extremum](std::int64_t a, std::int64_t b) {
        return extremum == Extremum::minimum ? std::min(a, b) : std::max(a, b);
      });
}

}  // namespace kzero
