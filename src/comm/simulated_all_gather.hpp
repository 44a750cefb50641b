// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The all-gather of a bucket on a simulated link.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>

#include "comm/aligned_memory.hpp"
#include "comm/simulated_traffic.hpp"
#include "comm/simulated_transfer.hpp"
#include "comm/source_watch.hpp"

namespace kzero::detail {

/// The data moves into a shadow of the bucket, and from there to where it
/// belongs when the transfer has ended.
class SimulatedAllGather final : public PendingOperation,
                                 public SimulatedTransfer {
 public:
  explicit SimulatedAllGather(SimulatedTraffic& traffic);

  void start(const GatherArguments& arguments, std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  bool test() override;
  void wait() override;
  void release() noexcept override;
  void poll() override;
  std::int64_t staging_bytes() const override;

 private:
  SteadyClock::time_point end() const;
  void finish();

  GatherArguments arguments_;
  SourceWatch source_;
  WorkSpace shadow_;
  Ticket inner_;
  bool has_come_ = false;  // the data, to the shadow
  bool ended_ = true;
  std::shared_ptr<void> owner_;
};

}  // namespace kzero::detail
