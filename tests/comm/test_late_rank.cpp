// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A rank that comes late to make_communicator or duplicate. In a program of its
// own: until it comes, MPI can make no other communicator.
#include <gtest/gtest.h>

#include <kzero/error.hpp>
#include <string>

#include "comm/backends.hpp"
#include "comm/failures.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

TEST(LateRank, IsMissedByTheOthersAndMissesThem) {
  const OwnComm given;
  const OwnComm own;
  const int late = world_size() - 1;
  if (world_rank() == late) meet(own);
  const std::string message = message_of<CommunicationError>([&] {
    make_communicator(given, {Backend::mpi, std::chrono::milliseconds(300)});
  });
  if (world_rank() != late) meet(own);
  EXPECT_EQ(
      message.find("making a communicator timed out after 0.3 s on rank " +
                   std::to_string(world_rank())),
      0u)
      << message;

  // Everyone has come now: the next one is made.
  meet(own);
  make_communicator(given, {Backend::mpi, std::chrono::seconds(30)})
      ->barrier({});
}

TEST(LateRank, IsMissedByADuplicate) {
  const OwnComm own;
  const auto communicator = make_communicator(
      MPI_COMM_WORLD, {Backend::mpi, std::chrono::milliseconds(300)});
  if (world_rank() == world_size() - 1) {
    meet(own);
    // It finds all the others there, and learns later that they have gone.
    EXPECT_THROW(communicator->duplicate()->barrier({}), CommunicationError);
  } else {
    const std::string message =
        message_of<CommunicationError>([&] { communicator->duplicate(); });
    meet(own);
    expect_part(message, "duplication timed out after 0.3 s on rank " +
                             std::to_string(world_rank()));
    expect_part(message, "does every rank of the communicator call duplicate?");
    expect_unusable(*communicator, "duplication timed out");
  }
  meet(own);
}

}  // namespace
}  // namespace kzero::test
