// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A rank that stays away while transfers overlap: the others say so within the
// timeout, in whatever call they are, and every later call says so at once.
#include <gtest/gtest.h>

#include <chrono>

#include "comm/world.hpp"
#include "optim/overlap_model.hpp"

namespace kzero::test {
namespace {

class OverlapFailures : public testing::TestWithParam<Progress> {
 protected:
  OverlapFailures() {
    CommunicatorOptions options;
    options.timeout = std::chrono::seconds(2);
    communicator = make_communicator(MPI_COMM_WORLD, options);
    missing = communicator->rank() == communicator->size() - 1;
    OptimizerOptions plain;
    plain.plan.bucket_bytes = 700;
    optimizer = std::make_unique<ShardedOptimizer>(
        communicator, model.set,
        Mode{Schedule::after_backward, GatherMode::overlapped, GetParam()}.in(
            plain));
  }

  void expect_unusable() {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(optimizer->step(), CommunicationError);
    EXPECT_THROW(optimizer->parameter<float*>(model.ids[0]),
                 CommunicationError);
    EXPECT_THROW(optimizer->broadcast_parameters(), CommunicationError);
    EXPECT_THROW(optimizer->mark_ready(model.ids[0]), CommunicationError);
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              communicator->timeout());
    EXPECT_FALSE(optimizer->describe().empty());
  }

  OverlapModel model;
  std::shared_ptr<Communicator> communicator;
  bool missing = false;
  std::unique_ptr<ShardedOptimizer> optimizer;
};

TEST_P(OverlapFailures, AMissingStepEndsInTheReductions) {
  if (!missing) {
    for (auto id = model.ids.rbegin(); id != model.ids.rend(); ++id)
      optimizer->mark_ready(*id);
    const auto message =
        message_of<CommunicationError>([&] { optimizer->step(); });
    EXPECT_NE(message.find("reduce of bucket 0"), std::string::npos) << message;
    expect_unusable();
  }
  optimizer.reset();
  meet(MPI_COMM_WORLD);
}

// Without a thread it is missing when it reads nothing.
TEST_P(OverlapFailures, AMissingReadEndsInTheGather) {
  optimizer->step();
  if (GetParam() == Progress::calls) {
    if (!missing) {
      const auto message =
          message_of<CommunicationError>([&] { optimizer->wait_parameters(); });
      EXPECT_NE(message.find("all-gather of bucket"), std::string::npos)
          << message;
      expect_unusable();
    }
  } else {
    optimizer->wait_parameters();
  }
  meet(MPI_COMM_WORLD);
  optimizer.reset();
  meet(MPI_COMM_WORLD);
}

std::string progress_name(const testing::TestParamInfo<Progress>& each) {
  return each.param == Progress::calls ? "calls" : "thread";
}

INSTANTIATE_TEST_SUITE_P(Progress, OverlapFailures,
                         testing::Values(Progress::calls, Progress::thread),
                         progress_name);

}  // namespace
}  // namespace kzero::test
