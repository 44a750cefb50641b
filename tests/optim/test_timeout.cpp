// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A rank that does not come to step(): the others say so within the timeout.
#include <gtest/gtest.h>

#include <chrono>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

TEST(Timeout, NamesOperationAndBucket) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CommunicatorOptions options;
  options.timeout = std::chrono::seconds(2);
  const auto communicator = make_communicator(MPI_COMM_WORLD, options);
  ParameterSet model;
  model.add("w", {1000});
  model.add("v", {1000});
  OptimizerOptions small;
  small.plan.bucket_bytes = 100;
  ShardedOptimizer optimizer(communicator, model, small);
  const int missing = ranks - 1;

  if (rank != missing) {
    const auto start = std::chrono::steady_clock::now();
    const std::string message =
        message_of<CommunicationError>([&] { optimizer.step(); });
    const auto taken = std::chrono::steady_clock::now() - start;
    for (const std::string& part :
         {std::string("reduce"), std::string("bucket 0"),
          detail::concat("rank ", missing)})
      EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_GE(taken, options.timeout);
    // What comes later says so at once.
    EXPECT_THROW(optimizer.step(), CommunicationError);
    EXPECT_THROW(optimizer.broadcast_parameters(), CommunicationError);
  }
  // The missing rank has let go of everything meanwhile.
}

}  // namespace
}  // namespace kzero::test
