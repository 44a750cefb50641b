// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <bit>
#include <cmath>
#include <cstddef>
#include <kzero/error.hpp>
#include <kzero/simulated_communicator.hpp>
#include <string>
#include <utility>
#include <vector>

#include "comm/figures.hpp"
#include "comm/simulated_communicator.hpp"
#include "core/message.hpp"

namespace kzero {

namespace {

using detail::concat;
using detail::Figures;

/// What is wrong with a link, for people; empty when nothing is.
std::string problem_of(const SimulatedLink& link) {
  if (link.latency.count() < 0) {
    return concat("the latency of a simulated link is ", link.latency.count(),
                  " ns: give 0 or more");
  }
  if (!std::isfinite(link.bytes_per_second) || link.bytes_per_second <= 0) {
    return concat("a simulated link passes ", link.bytes_per_second,
                  " bytes a second: give a positive finite number");
  }
  return {};
}

Figures figures_of(const SimulatedLink& link) {
  return {link.latency.count(),
          std::bit_cast<std::int64_t>(link.bytes_per_second)};
}

std::string words_of(const Figures& figures) {
  return concat("latency ", figures[0], " ns, ",
                std::bit_cast<double>(figures[1]), " bytes a second");
}

}  // namespace

std::shared_ptr<Communicator> make_simulated_communicator(
    std::shared_ptr<Communicator> inner, SimulatedLink link) {
  if (inner == nullptr) {
    throw InvalidArgument(
        "a simulated communicator without a communicator (null): give it the "
        "one that moves the data, made by make_communicator");
  }
  const std::vector<Figures> all =
      detail::exchange_figures(*inner, figures_of(link), problem_of(link));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw InvalidArgument(concat(
        "the figures of a simulated link differ between the ranks (rank 0: ",
        words_of(all[0]), "; rank ", rank, ": ", words_of(all[rank]),
        "): give every rank the same"));
  }
  return std::make_shared<detail::SimulatedCommunicator>(
      std::move(inner), std::make_shared<detail::SimulatedWire>(link));
}

}  // namespace kzero
