// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A rank that hears late who steps in a join, of three.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "comm/world.hpp"
#include "support/counting_communicator.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr int late = 1;

/// Ends some polls after every other rank has started a reduction.
class LateOperation : public PendingOperation {
 public:
  LateOperation(Ticket inner, MPI_Comm comm)
      : inner_(std::move(inner)), comm_(comm), missing_(world_size() - 1) {}

  bool test() override {
    int arrived = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &arrived, MPI_STATUS_IGNORE);
    if (arrived != 0) {
      char word = 0;
      MPI_Recv(&word, 1, MPI_CHAR, MPI_ANY_SOURCE, 0, comm_, MPI_STATUS_IGNORE);
      --missing_;
    }
    // The others need not wait for this rank.
    has_ended_ = has_ended_ || inner_->test();
    return missing_ == 0 && --polls_ < 0 && has_ended_;
  }
  void wait() override {
    while (!test()) {
    }
  }
  void release() noexcept override { delete this; }

 private:
  virtual ~LateOperation() = default;

  Ticket inner_;
  MPI_Comm comm_;
  int missing_;
  int polls_ = 1000;
  bool has_ended_ = false;
};

/// Its duplicates tell the late rank of the reductions that they start. The
/// first gather of one that is late is late there.
class LateCommunicator : public CountingCommunicator {
 public:
  LateCommunicator(std::shared_ptr<Communicator> inner, MPI_Comm comm,
                   bool is_late = false)
      : CountingCommunicator(inner),
        inner_(std::move(inner)),
        comm_(comm),
        is_late_(is_late) {}

  void make_late_duplicates() { duplicates_late_ = true; }

  std::shared_ptr<Communicator> duplicate() override {
    return std::make_shared<LateCommunicator>(inner_->duplicate(), comm_,
                                              duplicates_late_);
  }
  ReductionTicket start_reduce(const ReduceArguments& arguments) override {
    ReductionTicket ticket = inner_->start_reduce(arguments);
    const char word = 0;
    if (rank() != late) MPI_Send(&word, 1, MPI_CHAR, late, 0, comm_);
    return ticket;
  }
  Ticket start_all_gather(const GatherArguments& arguments) override {
    Ticket ticket = inner_->start_all_gather(arguments);
    if (!std::exchange(is_late_, false) || rank() != late) return ticket;
    return Ticket(new LateOperation(std::move(ticket), comm_));
  }

 private:
  std::shared_ptr<Communicator> inner_;
  MPI_Comm comm_;
  bool is_late_;
  bool duplicates_late_ = false;
};

// The other ranks know it, and send what the reduction waits for.
TEST(JoinChannel, NothingIsAddedUpBeforeItIsKnownWhoSteps) {
  const OwnComm comm;
  const auto communicator = std::make_shared<LateCommunicator>(world(), comm);
  ASSERT_EQ(communicator->size(), 3);
  ParameterSet set;
  const ParameterId id = set.add("p", {100});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  options.schedule = Schedule::after_backward;
  options.progress = Progress::calls;
  ShardedOptimizer optimizer(communicator, set, options);
  communicator->make_late_duplicates();
  Join join(optimizer);
  if (communicator->rank() < 2) {
    fill_gradient(optimizer, id, [](auto) { return 1.0; });
    optimizer.mark_ready(id);
    optimizer.step();
  }
  join.finish();
  EXPECT_EQ(read_parameter(optimizer, id), std::vector<double>(100, -1.0));
}

}  // namespace
}  // namespace kzero::test
