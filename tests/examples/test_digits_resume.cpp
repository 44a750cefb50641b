// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The example goes on from its checkpoint as if it had never stopped.
#include <gtest/gtest.h>

#include <string>

#include "agreement.hpp"
#include "checkpoints.hpp"
#include "examples/digits_support.hpp"

namespace {

using digits_test::TemporaryFile;
using digits_test::TrainingRun;
using digits_test::world_rank;
using digits_test::world_size;

digits_test::RunOptions run_options(kzero::DType dtype) {
  digits_test::RunOptions options;
  options.network.hidden = {32};
  options.network.dtype = dtype;
  options.batch = 61;
  return options;
}

/// The example's command line for such a run.
digits::Options command_line(const TemporaryFile& file) {
  digits::Options options;
  options.batch = 61;
  options.checkpoint = file.path();
  return options;
}

class DigitsResume : public testing::TestWithParam<kzero::DType> {};

TEST_P(DigitsResume, SameRanksSameBits) {
  const TemporaryFile file("resume.h5");
  TrainingRun run(run_options(GetParam()));
  const std::int64_t epoch = run.steps_per_epoch();
  run.steps(0, 2 * epoch);
  digits::save(run.optimizer(), command_line(file), 2);
  run.steps(2 * epoch, 4 * epoch);

  TrainingRun second(run_options(GetParam()));
  ASSERT_EQ(digits::resume(second.optimizer(), command_line(file)), 2);
  second.steps(2 * epoch, 4 * epoch);

  EXPECT_TRUE(second.parameter_bytes() == run.parameter_bytes());
}

TEST_P(DigitsResume, OneRankLessFollowsTheSameLosses) {
  if (world_size() == 1) GTEST_SKIP() << "needs two ranks";
  const TemporaryFile file("resume_fewer.h5");
  TrainingRun run(run_options(GetParam()));
  const std::int64_t epoch = run.steps_per_epoch();
  run.steps(0, epoch);
  digits::save(run.optimizer(), command_line(file), 1);
  const auto saved = run.parameter_bytes();
  std::vector<double> losses;
  for (int i = 0; i < 20; ++i) losses.push_back(run.step(epoch + i));

  const bool takes_part = world_rank() < world_size() - 1;
  MPI_Comm fewer = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, 0, &fewer);
  if (!takes_part) return;
  {
    TrainingRun second(run_options(GetParam()), fewer);
    EXPECT_EQ(digits::resume(second.optimizer(), command_line(file)), 1);
    EXPECT_TRUE(second.parameter_bytes() == saved);
    // Another number of ranks adds in another order: not the same bits. A
    // bfloat16 weight that then rounds to its other neighbour moves the loss
    // more.
    const double bound = GetParam() == kzero::DType::float32 ? 1e-4 : 2e-2;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(second.step(epoch + static_cast<int>(i)), losses[i], bound);
    }
  }
  MPI_Comm_free(&fewer);
}

INSTANTIATE_TEST_SUITE_P(Types, DigitsResume,
                         testing::Values(kzero::DType::float32,
                                         kzero::DType::bfloat16),
                         [](const auto& tested) {
                           return std::string(kzero::to_string(tested.param));
                         });

TEST(DigitsResumeOptions, CommandLineGoesBeforeTheFile) {
  const TemporaryFile file("resume_options.h5");
  TrainingRun run(run_options(kzero::DType::float32));
  digits::Options options = command_line(file);
  digits::save(run.optimizer(), options, 0);

  options.learning_rate = 5e-4;
  digits::resume(run.optimizer(), options);

  for (const char* group : {"default", "bias"}) {
    EXPECT_EQ(run.optimizer().group(group).get("learning_rate"), 5e-4);
  }
  EXPECT_EQ(run.optimizer().group("default").get("weight_decay"), 1e-2);
}

TEST(DigitsResumeErrors, EveryRankIsTold) {
  const TemporaryFile file("resume_errors.h5");
  TrainingRun run(run_options(kzero::DType::float32));
  digits::Options options = command_line(file);
  EXPECT_THROW(digits::resume(run.optimizer(), options),
               kzero::CheckpointError);

  digits::save(run.optimizer(), options, 3);
  options.batch = 64;
  EXPECT_THROW(digits::resume(run.optimizer(), options), digits::UserError);

  digits_test::RunOptions wider = run_options(kzero::DType::float32);
  wider.network.hidden = {33};
  TrainingRun other(wider);
  EXPECT_THROW(digits::resume(other.optimizer(), command_line(file)),
               kzero::CheckpointError);
}

}  // namespace
