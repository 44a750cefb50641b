// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The main program of every test that runs on ranks. Rank 0 prints what
// GoogleTest prints; the other ranks print their failures only, each line
// marked with the rank. Every rank returns the same exit code.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "support/launcher.hpp"

namespace {

/// Prints the failures of one rank, and nothing else.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }

  void OnTestEnd(const testing::TestInfo&) override { test_ = between_tests; }

  // GoogleTest holds its lock here: it must not be asked for anything.
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::ostringstream text;
    text << test_ << " failed";
    if (result.file_name() != nullptr) {
      text << " at " << result.file_name() << ":" << result.line_number();
    }
    text << "\n" << result.message();
    print(text.str());
  }

 private:
  static constexpr const char* between_tests = "set-up or tear-down";

  // One write for all lines, so that the ranks' lines do not mix.
  void print(const std::string& text) const {
    const std::string prefix = "[rank " + std::to_string(rank_) + "] ";
    std::istringstream lines(text);
    std::string all;
    for (std::string line; std::getline(lines, line);) {
      all += prefix + line + "\n";
    }
    std::fputs(all.c_str(), stdout);
    std::fflush(stdout);
  }

  int rank_;
  std::string test_ = between_tests;
};

/// False, with a message, when the program was not started on as many ranks as
/// the test asks for: what another MPI's launcher does.
bool started_as_asked(int rank, int size) {
  const char* asked = std::getenv("KZERO_TEST_RANKS");
  if (asked == nullptr || std::atoi(asked) == size) return true;
  std::fprintf(stderr,
               "[rank %d] the test asks for %s ranks but runs on %d: it was "
               "started by the launcher of another MPI than it is linked with. "
               "Set MPIEXEC_EXECUTABLE to the launcher of the MPI in use.\n",
               rank, asked, size);
  return false;
}

int run_all_tests(int rank) {
  if (rank != 0) {
    testing::TestEventListeners& listeners =
        testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(std::make_unique<FailurePrinter>(rank).release());
  }
  const int mine = RUN_ALL_TESTS();
  int worst = 1;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && mine == 0 && worst != 0) {
    std::printf("[  FAILED  ] on another rank, see the lines of that rank\n");
  }
  return worst;
}

/// With messages by TCP, MPI_Finalize of some MPICHs does not end in half of
/// the runs of any program (4.0.2 over UCX 1.13): such tests go without.
void leave_without_mpi_where_asked(int result) {
  const char* const launcher = std::getenv("PMI_FD");
  if (std::getenv("KZERO_TEST_WITHOUT_FINALIZE") == nullptr ||
      launcher == nullptr)
    return;
  MPI_Barrier(MPI_COMM_WORLD);
  std::fflush(stdout);
  // Until the others have taken what this rank has sent.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kzero::test::tell_launcher_of_the_end(std::atoi(launcher));
  std::_Exit(result);
}

}  // namespace

int main(int argc, char* argv[]) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = -1;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  int result = 1;
  if (started_as_asked(rank, size)) {
    Kokkos::initialize(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    result = run_all_tests(rank);
    Kokkos::finalize();
  }
  leave_without_mpi_where_asked(result);
  MPI_Finalize();
  return result;
}
