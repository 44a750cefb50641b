// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// MPI or Kokkos not started yet, or ended first: an exception that says what to
// do, never a crash.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <kzero/kzero.hpp>
#include <memory>
#include <optional>
#include <string>

#include "support/in_own_process.hpp"

namespace kzero::test {
namespace {

using Lifetimes = InOwnProcess;

ParameterSet model() {
  ParameterSet parameters;
  parameters.add("w", {1000});
  ParameterOptions half;
  half.dtype = DType::bfloat16;
  parameters.add("v", {1000}, half);
  return parameters;
}

template <class F>
void expect_refused(F&& call, const std::string& advice) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(advice), std::string::npos)
        << error.what();
  }
}

TEST_F(Lifetimes, CommunicatorNeedsMpi) {
  EXPECT_RUNS([] {
    expect_refused([] { make_communicator(MPI_COMM_WORLD); }, "MPI_Init");
    MPI_Init(nullptr, nullptr);
    MPI_Finalize();
    expect_refused([] { make_communicator(MPI_COMM_WORLD); }, "MPI_Finalize");
  });
}

TEST_F(Lifetimes, OptimizerNeedsKokkos) {
  EXPECT_RUNS([] {
    const auto communicator =
        make_communicator(MPI_COMM_NULL, {.backend = Backend::self});
    expect_refused([&] { ShardedOptimizer(communicator, model()); },
                   "Kokkos::initialize");
  });
}

TEST_F(Lifetimes, OneRankWorksWithoutMpi) {
  EXPECT_RUNS([] {
    Kokkos::initialize();
    {
      ShardedOptimizer optimizer(
          make_communicator(MPI_COMM_NULL, {.backend = Backend::self}),
          model());
      EXPECT_TRUE(optimizer.step().updated());
    }
    Kokkos::finalize();
    int started = 0;
    MPI_Initialized(&started);
    EXPECT_EQ(started, 0);
  });
}

// Views that it keeps alive are not freed, which would abort.
TEST_F(Lifetimes, ParameterSetMayOutliveKokkos) {
  EXPECT_RUNS([] {
    Kokkos::initialize();
    std::optional<ParameterSet> parameters;
    parameters.emplace();
    parameters->add("w", Kokkos::View<float**>("w", 10, 100),
                    Kokkos::View<float**>("g", 10, 100));
    Kokkos::finalize();
    parameters.reset();
  });
}

TEST_F(Lifetimes, OptimizerMayOutliveBoth) {
  EXPECT_RUNS([] {
    MPI_Init(nullptr, nullptr);
    Kokkos::initialize();
    std::optional<ShardedOptimizer> optimizer;
    optimizer.emplace(make_communicator(MPI_COMM_WORLD), model());
    optimizer->step();
    Kokkos::finalize();
    MPI_Finalize();
    optimizer.reset();
  });
}

}  // namespace
}  // namespace kzero::test
