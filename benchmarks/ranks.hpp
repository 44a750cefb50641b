// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The ranks of a benchmark, all on one machine: they start together, and the
// time of what they do together ends with the slowest of them.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

namespace kzero::bench {

class Ranks {
 public:
  /// Over MPI_COMM_WORLD, collective, as every call below. Throws
  /// InvalidArgument when the ranks are not on one machine.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// "2 ranks".
  std::string text() const;

  /// Waits for all ranks. Yields, and after a while naps, so that another
  /// program has the cores while the ranks wait for it.
  void meet();

  /// Seconds from the first rank's start to the last one's end.
  double time(const std::function<void()>& work);

  /// Likewise for one call of many.
  double time_of_each(int calls, const std::function<void()>& work);

  /// The sum over the ranks.
  double sum(double mine);

  /// What rank 0 gives.
  double from_first(double value);

 private:
  struct Shared;
  struct Times;
  Times& times(int rank);

  int rank_ = 0;
  int size_ = 1;
  Shared* shared_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace kzero::bench
