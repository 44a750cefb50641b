// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/simulated_transfer.hpp"

#include "comm/simulated_traffic.hpp"

namespace kzero::detail {

SimulatedTransfer::SimulatedTransfer(SimulatedTraffic& traffic)
    : traffic_(traffic), stamps_(traffic.health()) {}

std::int64_t* SimulatedTransfer::stamps() {
  return reinterpret_cast<std::int64_t*>(stamps_.reserve(
      traffic_.inner().size() * std::int64_t{sizeof(std::int64_t)}));
}

void SimulatedTransfer::post(const Subject& subject, std::int64_t bytes) {
  Communicator& inner = traffic_.inner();
  subject_ = subject;
  length_ = traffic_.wire()->length_of(bytes);
  // What the machine itself takes, when its cores are busy.
  patience_ = std::chrono::milliseconds(20) + std::chrono::nanoseconds(bytes);
  has_start_ = false;
  stamps()[inner.rank()] =
      std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count();

  GatherArguments arguments;
  arguments.bucket = stamps();
  arguments.dtype = DType::float64;  // as wide as a stamp
  arguments.shards = ShardTable::uniform(inner.size(), 1);
  arguments.index = subject.bucket;
  exchange_ = inner.start_all_gather(arguments);
  traffic_.add(*this);
}

SteadyClock::time_point SimulatedTransfer::arrival_of(
    std::int64_t bytes) const {
  return begin_ + traffic_.wire()->length_of(bytes);
}

void SimulatedTransfer::retire() noexcept {
  traffic_.remove(*this);
  exchange_.reset();
}

}  // namespace kzero::detail
