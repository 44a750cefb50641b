// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <cstdlib>
#include <kzero/error.hpp>
#include <kzero/log.hpp>
#include <string>
#include <vector>

#include "comm/backends.hpp"
#include "comm/world.hpp"

namespace kzero::test {
namespace {

TEST(MakeCommunicator, ChoosesByTheNumberOfRanks) {
  const auto communicator = make_communicator(MPI_COMM_WORLD);
  EXPECT_EQ(communicator->rank(), world_rank());
  EXPECT_EQ(communicator->size(), world_size());
  EXPECT_EQ(communicator->timeout(), std::chrono::minutes(10));
  const std::string text = communicator->describe();
  if (world_size() == 1) {
    EXPECT_EQ(text, "self: 1 rank (the communicator has one rank)");
  } else {
    EXPECT_EQ(text,
              "node: " + std::to_string(world_size()) +
                  " ranks that read one another's memory (all share a node)");
  }
}

TEST(MakeCommunicator, TakesTheBackendThatIsAskedFor) {
  EXPECT_EQ(make_communicator(MPI_COMM_SELF, {Backend::self})->describe(),
            "self: 1 rank (chosen by option)");
  EXPECT_EQ(make_communicator(MPI_COMM_WORLD, {Backend::mpi})
                ->describe()
                .substr(0, 5),
            "mpi: ");
}

TEST(MakeCommunicator, RefusesSelfForManyRanks) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  const std::string message = message_of<InvalidArgument>(
      [] { make_communicator(MPI_COMM_WORLD, {Backend::self}); });
  EXPECT_NE(message.find("backend self is for one rank"), std::string::npos)
      << message;
}

TEST(MakeCommunicator, RefusesWhatIsNoIntracommunicator) {
  EXPECT_THROW(make_communicator(MPI_COMM_NULL), InvalidArgument);
  if (world_size() == 1) return;
  const int side = world_rank() % 2;
  const OwnComm part(side, 0);
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - side, 1, &inter);
  EXPECT_THROW(make_communicator(inter), InvalidArgument);
  MPI_Comm_free(&inter);
}

TEST(MakeCommunicator, RefusesOptionsOutOfRange) {
  using std::chrono::milliseconds;
  for (const CommunicatorOptions& options : {
           CommunicatorOptions{Backend::automatic, milliseconds(0)},
           CommunicatorOptions{Backend::automatic, milliseconds(-5)},
           CommunicatorOptions{Backend::mpi, milliseconds(5000), 0},
           CommunicatorOptions{Backend::mpi, milliseconds(5000), -1},
           CommunicatorOptions{Backend::mpi, milliseconds(5000),
                               std::int64_t{1} << 31},
       }) {
    EXPECT_THROW(make_communicator(MPI_COMM_WORLD, options), InvalidArgument);
  }
}

TEST(MakeCommunicator, TakesTheLongestTimeout) {
  const auto communicator = make_communicator(
      MPI_COMM_WORLD, {Backend::mpi, std::chrono::milliseconds::max()});
  communicator->barrier({});
}

TEST(MakeCommunicator, RefusesMessageBytesThatDiffer) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  const int last = world_size() - 1;
  const std::int64_t bytes = world_rank() == last ? 2000 : 1000;
  const std::string message = message_of<InvalidArgument>([&] {
    make_communicator(MPI_COMM_WORLD,
                      {Backend::mpi, std::chrono::seconds(30), bytes});
  });
  EXPECT_NE(
      message.find("(rank 0: 1000, rank " + std::to_string(last) + ": 2000)"),
      std::string::npos)
      << message;
}

class LonelyRank : public testing::Test {
 protected:
  void SetUp() override {
    const char* before = std::getenv("SLURM_NTASKS");
    if (before != nullptr) before_ = before;
    setenv("SLURM_NTASKS", "4", 1);
    // Otherwise this test's own launcher is the first to be named.
    const char* launcher = std::getenv("PMI_SIZE");
    if (launcher != nullptr) launcher_ = launcher;
    unsetenv("PMI_SIZE");
    set_log_handler([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) warnings.emplace_back(message);
    });
  }
  void TearDown() override {
    set_log_handler({});
    unsetenv("SLURM_NTASKS");
    if (!before_.empty()) setenv("SLURM_NTASKS", before_.c_str(), 1);
    if (!launcher_.empty()) setenv("PMI_SIZE", launcher_.c_str(), 1);
  }

  std::vector<std::string> warnings;

 private:
  std::string before_;
  std::string launcher_;
};

TEST_F(LonelyRank, IsWarned) {
  for (const Backend backend : {Backend::automatic, Backend::mpi}) {
    warnings.clear();
    const auto communicator = make_communicator(MPI_COMM_SELF, {backend});
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(
        warnings[0].find("SLURM_NTASKS is 4 but the communicator has 1 rank"),
        0u)
        << warnings[0];
    EXPECT_NE(communicator->describe().find("SLURM_NTASKS is 4"),
              std::string::npos)
        << communicator->describe();
  }
}

TEST_F(LonelyRank, WhoAsksToBeAloneIsNotWarned) {
  make_communicator(MPI_COMM_SELF, {Backend::self});
  EXPECT_TRUE(warnings.empty());
}

TEST_F(LonelyRank, ManyRanksAreNotWarned) {
  if (world_size() == 1) GTEST_SKIP() << "for more than one rank";
  make_communicator(MPI_COMM_WORLD);
  EXPECT_TRUE(warnings.empty());
}

}  // namespace
}  // namespace kzero::test
