// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The all-gather of a bucket: every rank's shard straight to every peer and
// straight into its place.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

#include "comm/mpi_messages.hpp"

namespace kzero::detail {

class MpiAllGather final : public PendingOperation {
 public:
  explicit MpiAllGather(MpiLink& link);

  /// Posts all messages. owner stays alive until release().
  void start(const GatherArguments& arguments, std::shared_ptr<void> owner);

  bool free() const { return owner_ == nullptr; }

  bool test() override;
  void wait() override;
  void release() noexcept override;

 private:
  MpiLink& link_;
  MessageSet messages_;
  Subject subject_;
  bool ended_ = false;
  std::shared_ptr<void> owner_;
};

}  // namespace kzero::detail
