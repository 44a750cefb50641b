// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <kzero/error.hpp>
#include <kzero/simulated_communicator.hpp>
#include <limits>
#include <memory>
#include <string>

#include "comm/backends.hpp"
#include "comm/failures.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

using std::chrono::nanoseconds;

std::shared_ptr<Communicator> make_mpi() {
  return make_communicator(MPI_COMM_WORLD,
                           {Backend::mpi, std::chrono::seconds(30)});
}

TEST(MakeSimulatedCommunicator, SaysSo) {
  const auto inner = make_mpi();
  const auto simulated =
      make_simulated_communicator(inner, {nanoseconds(20'000), 1.5e9});
  EXPECT_EQ(simulated->describe(),
            inner->describe() +
                ", on a simulated link (latency 20000 ns, 1.5e+09 bytes a "
                "second)");
  EXPECT_EQ(simulated->rank(), world_rank());
  EXPECT_EQ(simulated->size(), world_size());
  EXPECT_EQ(simulated->timeout(), inner->timeout());
  EXPECT_EQ(simulated->concurrent(), inner->concurrent());
}

TEST(MakeSimulatedCommunicator, RefusesNoCommunicator) {
  EXPECT_THROW(make_simulated_communicator(nullptr, {}), InvalidArgument);
}

TEST(MakeSimulatedCommunicator, RefusesFiguresOutOfRangeOnEveryRank) {
  const SimulatedLink wrong[] = {
      {nanoseconds(-1), 1e9},
      {nanoseconds(0), 0},
      {nanoseconds(0), -1e9},
      {nanoseconds(0), std::numeric_limits<double>::infinity()},
      {nanoseconds(0), std::nan("")},
  };
  const auto inner = make_mpi();
  const int last = world_size() - 1;
  for (const SimulatedLink& link : wrong) {
    // Only on the last rank.
    const std::string message = message_of<InvalidArgument>([&] {
      make_simulated_communicator(
          inner, world_rank() == last ? link : SimulatedLink());
    });
    expect_part(message, "a simulated link");
    expect_part(message, "(found on rank " + std::to_string(last) + ")");
  }
}

TEST(MakeSimulatedCommunicator, RefusesFiguresThatDiffer) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  const auto inner = make_mpi();
  const int last = world_size() - 1;
  const bool is_last = world_rank() == last;
  const std::string message = message_of<InvalidArgument>([&] {
    make_simulated_communicator(inner, {nanoseconds(7), is_last ? 2e9 : 1e9});
  });
  expect_part(message, "(rank 0: latency 7 ns, 1e+09 bytes a second; rank " +
                           std::to_string(last) +
                           ": latency 7 ns, 2e+09 bytes a second)");
}

}  // namespace
}  // namespace kzero::test
