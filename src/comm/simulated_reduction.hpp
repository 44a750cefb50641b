// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reductions on a simulated link: the pieces of the wrapped communicator, each
// not before its time.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <memory>

#include "comm/simulated_traffic.hpp"
#include "comm/simulated_transfer.hpp"
#include "comm/source_watch.hpp"

namespace kzero::detail {

class SimulatedReduction final : public PendingReduction,
                                 public SimulatedTransfer {
 public:
  explicit SimulatedReduction(SimulatedTraffic& traffic);

  void start(const ReduceArguments& arguments, std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  const Contributions* next() override;
  bool test() override;
  void wait() override;
  void release() noexcept override;
  void poll() override;

 private:
  /// What has passed when this rank's shard is there as far as end: the larger
  /// of what it sent and what it received.
  std::int64_t bytes_up_to(std::int64_t end) const;
  /// When next() can give the piece that ends there; that there are no more,
  /// when it is null.
  SteadyClock::time_point arrival_of_piece(const Contributions* piece) const;
  SteadyClock::time_point arrival_of_next() const;
  /// Whether the wrapped reduction has the next piece.
  bool has_come();
  const Contributions* take();
  void finish();

  ReduceArguments arguments_;
  SourceWatch source_;
  ReductionTicket inner_;
  std::int64_t own_ = 0;      // elements of this rank's shard
  std::int64_t longest_ = 0;  // of all shards
  // The first piece is taken from the wrapped reduction before it is asked for:
  // only then is it known where it ends.
  const Contributions* ahead_ = nullptr;
  bool is_ahead_ = false;
  bool given_any_ = false;
  Range given_;  // the piece that the caller has
  bool ended_ = true;
  bool waited_ = true;
  std::shared_ptr<void> owner_;
};

}  // namespace kzero::detail
