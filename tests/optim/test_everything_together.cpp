// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Every type and kind of parameter under three rules at once, in all
// partitions, schedules, gather modes and ways of progress, against a serial
// training.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "optim/mixed_model.hpp"
#include "optim/overlap_model.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

constexpr int steps = 5;

std::shared_ptr<Communicator> alone() {
  return make_communicator(MPI_COMM_SELF, {.backend = Backend::self});
}

std::shared_ptr<Communicator> by_messages() {
  return make_communicator(
      MPI_COMM_WORLD,
      {.backend = Backend::mpi, .timeout = std::chrono::seconds(30)});
}

template <class F>
void for_each_way(Decision decision, F&& f) {
  for (const Partitioning& partition : all_partitions())
    for (const Mode& mode : all_modes(decision)) {
      SCOPED_TRACE(detail::concat(name_of(partition), ", ", name_of(mode)));
      f(partition, mode);
      if (failed_on_any_rank()) return;
    }
}

/// One training, marked in another order on every rank.
class Training {
 public:
  Training(std::shared_ptr<Communicator> communicator,
           const OptimizerOptions& options, Feedback feedback)
      : model_(mixed_parameters(), feedback),
        random_(unsigned(communicator->rank()) + 17),
        optimizer_(std::move(communicator), model_.set(), options) {
    model_.write_start(optimizer_);
  }

  void train() {
    const Part whole[] = {{model_}};
    for (int step = 0; step < steps; ++step) {
      pass(optimizer_, whole, step, random_);
      EXPECT_TRUE(optimizer_.step().updated());
    }
  }

  void expect_near(const SerialModel& serial) {
    for (std::int64_t p = 0; p < model_.size(); ++p) {
      // Of 16-bit parameters, one unit in the last place.
      const DType dtype = model_.info(p).dtype;
      const double tolerance = dtype == DType::bfloat16  ? 0x1p-7
                               : dtype == DType::float16 ? 0x1p-10
                                                         : 1e-5;
      const auto got = model_.values(optimizer_, 0, p);
      const auto expected = serial.values(p);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i],
                    tolerance * std::abs(expected[i]) + 1e-7)
            << model_.info(p).name << ' ' << i;
    }
  }

  MixedModel& model() { return model_; }
  ShardedOptimizer& optimizer() { return optimizer_; }

 private:
  MixedModel model_;
  std::mt19937 random_;
  ShardedOptimizer optimizer_;
};

SerialModel trained(const MixedModel& model, const Rules& rules, int ranks,
                    std::optional<double> clip_norm = std::nullopt) {
  SerialModel serial(model, rules, ranks);
  for (int step = 0; step < steps; ++step) serial.step(step, clip_norm);
  return serial;
}

void expect_bits(const std::shared_ptr<Communicator>& communicator,
                 bool share_parameters = false) {
  const MixedModel model(mixed_parameters());
  const SerialModel serial =
      trained(model, mixed_rules(), communicator->size());
  for_each_way(
      Decision::none, [&](const Partitioning& partition, const Mode& mode) {
        OptimizerOptions options = mode.in(mixed_options(mixed_rules()));
        partition.set(options.plan);
        options.share_parameters = share_parameters;
        Training training(communicator, options, Feedback::values);
        training.train();
        expect_serial(training.optimizer(), {training.model()}, serial);
      });
}

TEST(EverythingTogether, HasTheBitsOfASerialTraining) {
  expect_bits(by_messages());
}

TEST(EverythingTogether, HasTheBitsOfASerialTrainingInSharedMemory) {
  if (world()->size() == 1) GTEST_SKIP() << "for more than one rank";
  expect_bits(world());
}

TEST(EverythingTogether, HasTheBitsOfASerialTrainingWithSharedParameters) {
  if (world()->size() == 1) GTEST_SKIP() << "for more than one rank";
  expect_bits(world(), true);
}

TEST(EverythingTogether, HasTheBitsOfASerialTrainingOnRanksAlone) {
  expect_bits(alone());
}

// The norm's sums and those of the trust ratios have an order of their own.
void expect_near(const std::shared_ptr<Communicator>& communicator,
                 const Rules& rules, std::optional<double> clip_norm) {
  const MixedModel model(mixed_parameters(), Feedback::none);
  const SerialModel serial =
      trained(model, rules, communicator->size(), clip_norm);
  for_each_way(Decision::needed,
               [&](const Partitioning& partition, const Mode& mode) {
                 OptimizerOptions options = mode.in(mixed_options(rules));
                 options.clip_norm = clip_norm;
                 partition.set(options.plan);
                 Training training(communicator, options, Feedback::none);
                 training.train();
                 training.expect_near(serial);
               });
}

TEST(EverythingTogether, ClipsAsASerialTraining) {
  expect_near(by_messages(), mixed_rules(), 3.0);
  expect_near(alone(), mixed_rules(), 3.0);
}

TEST(EverythingTogether, HasTheTrustRatiosOfASerialTraining) {
  Rules rules = mixed_rules();
  rules["default"] = Lamb{.learning_rate = 0.02};
  expect_near(by_messages(), rules, std::nullopt);
  expect_near(alone(), rules, 3.0);
}

}  // namespace
}  // namespace kzero::test
