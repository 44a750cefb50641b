// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// MPI ends while an optimizer is alive that has transfers under way, and a
// thread: the program ends as it should. What was gathered can be read.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstring>
#include <kzero/kzero.hpp>
#include <string>

int main(int argc, char* argv[]) {
  using namespace kzero;
  const std::string how = argc > 1 ? argv[1] : "calls";
  const bool interleaved = how.find("interleaved") != std::string::npos;
  const bool marks = how.find("marks") != std::string::npos;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  Kokkos::initialize(argc, argv);
  int wrong = 0;
  {
    constexpr std::int64_t width = 100 * 1000;
    ParameterSet set;
    for (int i = 0; i < 5; ++i) set.add("p" + std::to_string(i), {width});
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = 1.0};
    options.schedule =
        interleaved ? Schedule::interleaved : Schedule::after_backward;
    options.gather = GatherMode::overlapped;
    options.progress = how.find("thread") != std::string::npos
                           ? Progress::thread
                           : Progress::calls;
    options.plan.bucket_bytes = width * 4;
    ShardedOptimizer optimizer(make_communicator(MPI_COMM_WORLD), set, options);
    for (int step = 0; step < 2; ++step) {
      for (std::int64_t i = 4; i >= 0; --i) {
        Kokkos::deep_copy(optimizer.gradient<float*>({i}), 1.0f);
        optimizer.mark_ready({i});
      }
      optimizer.step();
    }
    if (marks) {
      optimizer.wait_parameters();
      for (std::int64_t i = 4; i >= 2; --i) optimizer.mark_ready({i});
    }
    MPI_Finalize();
    // What is marked may have been updated on some ranks.
    for (std::int64_t i = 0; i < (interleaved && marks ? 2 : 5); ++i)
      wrong += optimizer.parameter<float*>({i})(width - 1) != -2.0f;
    if (optimizer.communicator()->size() > 1) {
      try {
        optimizer.step();
        ++wrong;
      } catch (const CommunicationError&) {
      }
    }
  }
  Kokkos::finalize();
  return wrong;
}
