// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Each case runs in a process of its own: MPI starts once in a process.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <kzero/error.hpp>
#include <kzero/runtime.hpp>
#include <string>

#include "support/in_own_process.hpp"

namespace kzero::test {
namespace {

bool mpi_initialized() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

bool mpi_finalized() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

void expect_initialize_refused(const std::string& who) {
  try {
    initialize();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).find(who + " is finalised"), 0u)
        << error.what();
  }
}

using Runtime = InOwnProcess;

TEST_F(Runtime, StartsAndEndsBoth) {
  EXPECT_RUNS([] {
    initialize();
    EXPECT_TRUE(mpi_initialized());
    EXPECT_TRUE(Kokkos::is_initialized());
    initialize();
    finalize();
    EXPECT_TRUE(mpi_finalized());
    EXPECT_FALSE(Kokkos::is_initialized());
    finalize();
    expect_initialize_refused("MPI");
  });
}

TEST_F(Runtime, TakesCommandLineArguments) {
  EXPECT_RUNS([] {
    std::string program = "program";
    std::string own = "--own";
    char* arguments[] = {program.data(), own.data(), nullptr};
    int argc = 2;
    char** argv = arguments;
    initialize(argc, argv);
    EXPECT_TRUE(mpi_initialized());
    EXPECT_TRUE(Kokkos::is_initialized());
    EXPECT_EQ(argc, 2);
    EXPECT_STREQ(argv[1], "--own");
    finalize();
  });
}

TEST_F(Runtime, LeavesWhatTheCallerStarted) {
  EXPECT_RUNS([] {
    MPI_Init(nullptr, nullptr);
    initialize();
    EXPECT_TRUE(Kokkos::is_initialized());
    finalize();
    EXPECT_FALSE(Kokkos::is_initialized());
    EXPECT_FALSE(mpi_finalized());
    MPI_Finalize();
  });
  EXPECT_RUNS([] {
    Kokkos::initialize();
    initialize();
    EXPECT_TRUE(mpi_initialized());
    finalize();
    EXPECT_TRUE(mpi_finalized());
    EXPECT_TRUE(Kokkos::is_initialized());
    Kokkos::finalize();
  });
}

TEST_F(Runtime, EndsWhatIsLeft) {
  EXPECT_RUNS([] {
    initialize();
    Kokkos::finalize();
    MPI_Finalize();
    finalize();
  });
}

TEST_F(Runtime, DoesNothingWhereNothingWasStarted) {
  EXPECT_RUNS([] {
    finalize();
    EXPECT_FALSE(mpi_initialized());
  });
}

TEST_F(Runtime, RefusesWhatCannotStartTwice) {
  EXPECT_RUNS([] {
    MPI_Init(nullptr, nullptr);
    MPI_Finalize();
    expect_initialize_refused("MPI");
    EXPECT_FALSE(Kokkos::is_initialized());
  });
  EXPECT_RUNS([] {
    MPI_Init(nullptr, nullptr);
    initialize();
    finalize();
    expect_initialize_refused("Kokkos");
    MPI_Finalize();
  });
}

}  // namespace
}  // namespace kzero::test
