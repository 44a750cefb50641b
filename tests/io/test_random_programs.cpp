// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Random programs of calls, local ones other on each rank, against a serial
// model: what every parameter, its state and its count are is known at any
// time. Every call follows every other one.
#include <gtest/gtest.h>
#include <mpi.h>

#include <memory>
#include <string>

#include "io/random_programs/program.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

/// Every rank ends, or the others would wait for it: what is wrong on one is
/// known to all.
std::string run_program(const std::shared_ptr<Communicator>& communicator,
                        unsigned seed, const ScratchFolder& folder,
                        Pairs& pairs) {
  std::unique_ptr<Program> program;
  try {
    program = std::make_unique<Program>(communicator, seed, folder, pairs);
    program->run(16);
    return program->failure();
  } catch (const std::exception& error) {
    return detail::concat(error.what(), " in ",
                          program ? program->name() : std::to_string(seed));
  }
}

TEST(RandomPrograms, GiveWhatASerialModelGives) {
  const auto fast = world();
  CommunicatorOptions patient;
  patient.timeout = std::chrono::seconds(120);
  // On which what is read or written too early shows.
  const auto slow = make_simulated_communicator(
      world(), {std::chrono::microseconds(100), 1e9});
  const auto verdicts = make_communicator(MPI_COMM_WORLD, patient);
  const ScratchFolder folder(MPI_COMM_WORLD);
  Pairs pairs;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::string failure =
        run_program(seed % 4 == 3 ? slow : fast, seed, folder, pairs);
    std::int64_t failed = failure.empty() ? 0 : 1;
    if (failed != 0) ADD_FAILURE() << failure;
    verdicts->all_reduce({&failed, 1}, Extremum::maximum, {"test"});
    if (failed != 0) FAIL() << "seed " << seed;
  }
  EXPECT_EQ(pairs.missing(), "");
}

}  // namespace
}  // namespace kzero::test
