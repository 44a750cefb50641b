// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// An MPI that was initialised without MPI_THREAD_MULTIPLE: a thread that is
// asked for is refused on every rank, automatic does without, and says so.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <kzero/kzero.hpp>
#include <string>

namespace {

int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  ++failures;
  std::printf("wrong: %s\n", what.c_str());
}

void run() {
  using namespace kzero;
  const auto communicator = make_communicator(MPI_COMM_WORLD);
  ParameterSet model;
  for (int i = 0; i < 5; ++i) model.add("p" + std::to_string(i), {100});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  options.schedule = Schedule::after_backward;
  options.gather = GatherMode::overlapped;
  options.plan.bucket_bytes = 400;
  const bool alone = communicator->size() == 1;
  options.progress = Progress::thread;
  try {
    ShardedOptimizer refused(communicator, model, options);
    expect(alone, "a thread was not refused");
  } catch (const InvalidArgument& error) {
    expect(
        !alone && std::strstr(error.what(), "MPI_THREAD_MULTIPLE") != nullptr,
        error.what());
  }
  options.progress = Progress::automatic;
  ShardedOptimizer optimizer(communicator, model, options);
  const std::string said = optimizer.describe();
  expect(said.find(alone ? "one rank" : "MPI_THREAD_MULTIPLE") !=
             std::string::npos,
         said);
  for (int step = 0; step < 3; ++step) {
    for (std::int64_t i = 4; i >= 0; --i) {
      Kokkos::deep_copy(optimizer.gradient<float*>({i}), 1.0f);
      optimizer.mark_ready({i});
    }
    optimizer.step();
  }
  for (std::int64_t i = 0; i < 5; ++i)
    expect(optimizer.parameter<float*>({i})(99) == -3.0f, "the result");
}

}  // namespace

int main(int argc, char* argv[]) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    Kokkos::initialize(argc, argv);
    run();
    Kokkos::finalize();
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
