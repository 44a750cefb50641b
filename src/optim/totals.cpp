// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/totals.hpp"

#include <algorithm>
#include <type_traits>

namespace kzero::detail {

static_assert(std::is_trivially_copyable_v<Totals>);

Totals& Totals::operator+=(const Totals& other) {
  counted.squares += other.counted.squares;
  counted.zeros += other.counted.zeros;
  counted.nonfinite += other.counted.nonfinite;
  nonfinite += other.nonfinite;
  culprit = std::min(culprit, other.culprit);
  unnamed += other.unnamed;
  return *this;
}

Totals add_over_ranks(Communicator& communicator, const Totals& mine,
                      std::span<Totals> exchanged) {
  communicator.all_gather(&mine, sizeof mine, exchanged.data(),
                          {"step (totals)"});
  Totals all;
  for (const Totals& each : exchanged) all += each;
  return all;
}

Culprit smallest(Communicator& communicator, const Culprit& mine,
                 std::span<Culprit> exchanged) {
  communicator.all_gather(&mine, sizeof mine, exchanged.data(),
                          {"step (culprit)"});
  return *std::min_element(exchanged.begin(), exchanged.end());
}

}  // namespace kzero::detail
