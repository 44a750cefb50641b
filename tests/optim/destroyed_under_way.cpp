// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Optimizers that end while transfers are under way: nobody waits, nothing is
// lost that others need, and the program ends. Run in a process of its own,
// since it is MPI_Finalize that could hang.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <kzero/kzero.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kzero;

constexpr int parameters = 6;
constexpr std::int64_t width = 300 * 1000;  // more than goes in one message

OptimizerOptions options_of(Progress progress,
                            Schedule schedule = Schedule::after_backward) {
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  options.schedule = schedule;
  options.gather = GatherMode::overlapped;
  options.progress = progress;
  options.plan.bucket_bytes = width * 4;
  return options;
}

/// Of the program's own: nothing may come here when the optimizer is gone.
std::vector<float> own_value(width), own_gradient(width);

ParameterSet model() {
  ParameterSet set;
  for (int i = 0; i + 1 < parameters; ++i)
    set.add("p" + std::to_string(i), {width});
  set.add("own", ExternalArray{own_value.data(), DType::float32, {width}},
          ExternalArray{own_gradient.data(), DType::float32, {width}});
  return set;
}

/// Each rank stops somewhere else.
enum class End { after_step, in_forward, in_backward };

void train_and_leave(const std::shared_ptr<Communicator>& communicator,
                     Progress progress, Schedule schedule, End end) {
  std::mt19937 random(unsigned(communicator->rank()) + 17u);
  ShardedOptimizer optimizer(communicator, model(),
                             options_of(progress, schedule));
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t i = parameters - 1; i >= 0; --i) {
      Kokkos::deep_copy(optimizer.gradient<float*>({i}), 1.0f);
      optimizer.mark_ready({i});
    }
    optimizer.step();
  }
  if (end == End::after_step) return;
  const auto some = std::int64_t(random() % parameters);
  for (std::int64_t i = 0; i < some; ++i)
    if (optimizer.parameter<float*>({i})(width - 1) != -2.0f) std::exit(3);
  if (end == End::in_forward) return;
  optimizer.wait_parameters();
  for (std::int64_t i = parameters - 1; i > some; --i)
    optimizer.mark_ready({i});
}

}  // namespace

int main(int argc, char* argv[]) {
  const std::string how = argc > 1 ? argv[1] : "after_step";
  const End end = how == "in_forward"    ? End::in_forward
                  : how == "in_backward" ? End::in_backward
                                         : End::after_step;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  Kokkos::initialize(argc, argv);
  {
    const auto communicator = make_communicator(MPI_COMM_WORLD);
    for (const Schedule schedule :
         {Schedule::after_backward, Schedule::interleaved})
      for (const Progress progress :
           {Progress::calls, Progress::thread, Progress::calls})
        train_and_leave(communicator, progress, schedule, end);
    std::fill(own_value.begin(), own_value.end(), 77.0f);
    std::fill(own_gradient.begin(), own_gradient.end(), 0.0f);
    // Of others that are destroyed when they have stepped, moved from and
    // assigned to.
    ShardedOptimizer first(communicator, model(), options_of(Progress::calls));
    first.step();
    first =
        ShardedOptimizer(communicator, model(), options_of(Progress::calls));
    first.step();
    if (first.parameter<float*>({0})(0) != 0.0f) std::exit(4);
    first.wait_parameters();
    // The new ones began with it, and stepped by nothing.
    for (const float value : own_value)
      if (value != 77.0f) std::exit(5);
  }
  Kokkos::finalize();
  MPI_Finalize();
  return 0;
}
