// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause
// Ranks fit one line, each to a sample of its own: mpiexec -n 4 01_hello
#include <cstdio>
#include <kzero/kzero.hpp>

int main(int argc, char* argv[]) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  {
    auto communicator = kzero::make_communicator(MPI_COMM_WORLD);
    kzero::ParameterSet model;
    const auto slope = model.add("slope", {1});
    const auto offset = model.add("offset", {1});
    kzero::OptimizerOptions options;
    options.rule = kzero::AdamW{.learning_rate = 0.05, .weight_decay = 0.0};
    kzero::ShardedOptimizer optimizer(communicator, model, options);
    const auto a = optimizer.parameter<float*>(slope);
    const auto b = optimizer.parameter<float*>(offset);
    const auto da = optimizer.gradient<float*>(slope);
    const auto db = optimizer.gradient<float*>(offset);
    const float x = 1.0f + static_cast<float>(communicator->rank());
    for (int step = 0; step < 2000; ++step) {
      Kokkos::parallel_for(
          "gradient", 1, KOKKOS_LAMBDA(int) {
            const float error = a(0) * x + b(0) - (3.0f * x - 2.0f);
            da(0) = error * x;  // assigned: zero_gradients() is for adding up
            db(0) = error;
          });
      optimizer.step();  // averaged over the ranks, updated in shards, gathered
    }
    const Kokkos::HostSpace host;
    const auto line_a = Kokkos::create_mirror_view_and_copy(host, a);
    const auto line_b = Kokkos::create_mirror_view_and_copy(host, b);
    if (communicator->rank() == 0)
      std::printf("y = %.3f x + %.3f\n", line_a(0), line_b(0));
  }
  Kokkos::finalize();
  MPI_Finalize();
}
