// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// All transfers of one communicator on a simulated link.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <memory>
#include <vector>

#include "comm/health.hpp"
#include "comm/simulated_transfer.hpp"
#include "comm/simulated_wire.hpp"

namespace kzero::detail {

class SimulatedTraffic {
 public:
  SimulatedTraffic(std::shared_ptr<Communicator> inner,
                   std::shared_ptr<SimulatedWire> wire);

  Communicator& inner() const { return *inner_; }
  const std::shared_ptr<SimulatedWire>& wire() const { return wire_; }
  const std::shared_ptr<Health>& health() const { return health_; }

  /// Runs a part of a collective. After such an exception the communicator is
  /// unusable.
  template <class Fatal = CommunicationError, class F>
  decltype(auto) run(const Subject& subject, F&& part) {
    health_->require(subject);
    try {
      return part();
    } catch (const Fatal& error) {
      health_->break_off(error.what());
      throw;
    }
  }

  /// Transfers under way, in the order of their posting.
  void add(SimulatedTransfer& transfer) { under_way_.push_back(&transfer); }
  void remove(SimulatedTransfer& transfer) noexcept;

  /// Moves the data of all, and gives a start to those that every rank has
  /// posted. Waits for nobody.
  void advance();

  /// Advances until it has a start, a few times at most: what has been sent is
  /// seen by then. Whether it has one.
  bool look_for_start(const SimulatedTransfer& transfer);

  /// Waits until every rank has posted it.
  void wait_for_start(SimulatedTransfer& transfer);

  /// Advances meanwhile: in a real network data moves by itself.
  void sleep_until(SteadyClock::time_point end);

  /// Takes the time of a collective that has just done its work.
  void take_time(std::int64_t bytes);

 private:
  void give_start(SimulatedTransfer& transfer);

  std::shared_ptr<Communicator> inner_;
  std::shared_ptr<SimulatedWire> wire_;
  std::shared_ptr<Health> health_ = std::make_shared<Health>();
  std::vector<SimulatedTransfer*> under_way_;
  SteadyClock::time_point last_end_;  // of those that have a start
};

}  // namespace kzero::detail
