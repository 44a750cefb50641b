// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause
// Least squares by a rule of our own: mpiexec -n 4 03_own_rule
#include <cmath>
#include <cstdio>
#include <kzero/kzero.hpp>

struct Signum {  // steps by the momentum's sign, smaller and smaller ones
  static constexpr std::string_view name = "signum";
  static constexpr std::array<std::string_view, 1> state = {"momentum"};
  double learning_rate = 1e-3, beta = 0.9, step = 0.0;
  static constexpr kzero::Hyperparameter<Signum> hyperparameters[] = {
      {"learning_rate", &Signum::learning_rate}, {"beta", &Signum::beta}};
  Signum prepared(std::int64_t t) const {
    Signum copy = *this;
    copy.step = learning_rate / std::sqrt(static_cast<double>(t));
    return copy;
  }
  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    s[0] = T(beta) * s[0] + T(1.0 - beta) * g;
    p -= T(step) * (T(s[0] > T(0)) - T(s[0] < T(0)));
  }
};

void train(kzero::ShardedOptimizer& optimizer, int steps) {  // y = 3 x - 2
  const auto line = optimizer.parameter<float*>({0});
  const auto slope = optimizer.gradient<float*>({0});
  const auto rank = static_cast<float>(optimizer.communicator()->rank());
  for (int step = 0; step < steps; ++step) {
    slope(0) = slope(1) = 0.0f;
    for (float x = rank; x < rank + 1.0f; x += 0.125f) {  // 8 samples a rank
      const float error = line(0) * x + line(1) - (3.0f * x - 2.0f);
      slope(0) += error * x;
      slope(1) += error;
    }
    optimizer.step();
  }
  if (rank == 0.0f)
    std::printf("step %d: y = %.2f x + %.2f\n", int(optimizer.steps()), line(0),
                line(1));
}

int main(int argc, char* argv[]) {
  kzero::initialize(argc, argv);
  {
    kzero::ParameterSet model;
    model.add("line", {2});
    kzero::OptimizerOptions options{.rule = Signum{.learning_rate = 0.3}};
    const auto communicator = kzero::make_communicator(MPI_COMM_WORLD);
    kzero::ShardedOptimizer optimizer(communicator, model, options);
    train(optimizer, 100);
    kzero::save_checkpoint(optimizer, "own_rule.h5");
    options.rule = Signum{};  // the file has the learning rate, and the state
    kzero::ShardedOptimizer resumed(communicator, model, options);
    kzero::load_checkpoint(resumed, "own_rule.h5");
    train(resumed, 400);
  }
  kzero::finalize();
}
