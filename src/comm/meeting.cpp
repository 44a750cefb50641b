// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/meeting.hpp"

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>

namespace kzero::detail {

Meeting::Meeting(MPI_Comm communicator)
    : link_(communicator, std::chrono::milliseconds::max(),
            std::make_shared<Health>()),
      messages_(link_),
      received_(static_cast<std::size_t>(link_.size())) {
  link_.keep_communicator();
  post();
}

void Meeting::post() {
  messages_.begin(link_.begin(Collective::farewell, {"farewell"}));
  for (int distance = 1; distance < link_.size(); ++distance) {
    const int peer = link_.neighbour(distance);
    messages_.receive(&received_[static_cast<std::size_t>(peer)], 1, peer);
    messages_.send(&sent_, 1, peer);
  }
}

bool Meeting::has_ended() noexcept {
  if (ended_) return true;
  try {
    ended_ = messages_.test(Until::ended);
  } catch (const std::exception&) {
    ended_ = true;
  }
  return ended_;
}

}  // namespace kzero::detail
