// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A rank that comes late to make_communicator. In a program of its own: until
// it comes, MPI can make no other communicator.
#include <gtest/gtest.h>

#include <kzero/error.hpp>
#include <string>

#include "comm/backends.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

TEST(LateRank, IsMissedByTheOthersAndMissesThem) {
  const OwnComm given;
  const OwnComm own;
  const int late = world_size() - 1;
  if (world_rank() == late) MPI_Barrier(own);
  const std::string message = message_of<CommunicationError>([&] {
    make_communicator(given, {Backend::mpi, std::chrono::milliseconds(300)});
  });
  if (world_rank() != late) MPI_Barrier(own);
  EXPECT_EQ(
      message.find("making a communicator timed out after 0.3 s on rank " +
                   std::to_string(world_rank())),
      0u)
      << message;

  // Everyone has come now: the next one is made.
  MPI_Barrier(own);
  make_communicator(given, {Backend::mpi, std::chrono::seconds(30)})
      ->barrier({});
}

}  // namespace
}  // namespace kzero::test
