// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause
// Gradients that travel as bfloat16: mpiexec -n 4 04_bf16_gradients
#include <cmath>
#include <cstdio>
#include <kzero/kzero.hpp>
#include <map>

// A hook around the reduction of each bucket. What arrives is added up in
// float32; only the gradients themselves are rounded.
class SendBfloat16 {
 public:
  kzero::ReductionTicket operator()(kzero::BucketReduction& bucket) {
    if (bucket.dtype() != kzero::DType::float32) return bucket.start();
    std::shared_ptr<void>& memory = memory_[{bucket.index(), bucket.size()}];
    if (!memory) memory = bucket.communicator().allocate(2 * bucket.size());
    auto* rounded = static_cast<kzero::bfloat16*>(memory.get());
    for (const float gradient : bucket.gradients<float>())
      *rounded++ = kzero::bfloat16(gradient);
    return bucket.start(memory.get(), kzero::DType::bfloat16);
  }

 private:
  // By bucket and size. It must stay as it is until the step ends.
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<void>>
      memory_;
};

// Each rank sees the wave a little higher or lower; their mean is right.
void fit(const char* name, const kzero::OptimizerOptions& options) {
  constexpr int size = 1000;
  const auto communicator = kzero::make_communicator(MPI_COMM_WORLD);
  kzero::ParameterSet model;
  const auto wave = model.add("wave", {size});
  kzero::ShardedOptimizer optimizer(communicator, model, options);
  const auto y = optimizer.parameter<float*>(wave);
  const auto dy = optimizer.gradient<float*>(wave);
  const int ranks = communicator->size();
  const float off = float(communicator->rank()) - 0.5f * float(ranks - 1);
  const auto target = [](int i) { return std::sin(0.01f * float(i)); };
  kzero::StepReport report;
  for (int step = 0; step < 200; ++step) {
    for (int i = 0; i < size; ++i) dy(i) = y(i) - (target(i) + off);
    report = optimizer.step();
  }
  float error = 0.0f;
  for (int i = 0; i < size; ++i)
    error = std::max(error, std::abs(y(i) - target(i)));
  if (communicator->rank() == 0)
    std::printf("%s: %lld bytes sent a step, largest error %.3f\n", name,
                static_cast<long long>(report.bytes_sent()), error);
}

int main(int argc, char* argv[]) {
  kzero::initialize(argc, argv);
  kzero::OptimizerOptions options{.rule = kzero::Sgd{.learning_rate = 0.1}};
  fit("float32", options);
  options.reduction_hook = SendBfloat16();
  fit("bfloat16", options);
  kzero::finalize();
}
