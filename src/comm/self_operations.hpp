// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reductions and gathers of one rank: nothing to do, but the same rules as
// with many, so that a program learns them from its first run.
#pragma once

#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

#include "comm/health.hpp"

namespace kzero::detail {

struct SelfState;

class SelfReduction final : public PendingReduction {
 public:
  explicit SelfReduction(SelfState& state) : state_(state) {}

  void start(const ReduceArguments& arguments, std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  const Contributions* next() override;
  bool test() override;
  void wait() override;
  void release() noexcept override;

 private:
  SelfState& state_;
  Subject subject_;
  Contribution part_;
  Contributions contributions_;
  bool given_ = false;
  bool ended_ = true;
  bool waited_ = true;
  std::shared_ptr<void> owner_;
};

class SelfAllGather final : public PendingOperation {
 public:
  explicit SelfAllGather(SelfState& state) : state_(state) {}

  void start(const GatherArguments& arguments, std::shared_ptr<void> owner);
  bool free() const { return owner_ == nullptr; }

  bool test() override;
  void wait() override;
  void release() noexcept override;

 private:
  SelfState& state_;
  Subject subject_;
  bool ended_ = true;
  std::shared_ptr<void> owner_;
};

struct SelfState {
  std::shared_ptr<Health> health;
  std::vector<SelfReduction*> started;  // and not ended, in order
  std::vector<std::unique_ptr<SelfReduction>> reductions;
  std::vector<std::unique_ptr<SelfAllGather>> all_gathers;
};

}  // namespace kzero::detail
