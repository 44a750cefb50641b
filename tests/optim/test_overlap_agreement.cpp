// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Ranks that differ in a hyperparameter while their reductions go out during
// the backward pass: nothing is changed, and the step can be made again.
#include <gtest/gtest.h>

#include "optim/overlap_model.hpp"
#include "support/counting_communicator.hpp"
#include "support/grid.hpp"

namespace kzero::test {
namespace {

class OverlapAgreement : public testing::TestWithParam<Progress> {
 protected:
  OverlapAgreement() {
    options =
        Mode{Schedule::after_backward, GatherMode::overlapped, GetParam()}.in(
            {});
    options.rule = AdamW{.learning_rate = 0.125};
    options.plan.bucket_bytes = 700;
  }

  std::vector<double> all_gradients(ShardedOptimizer& optimizer) const {
    std::vector<double> values;
    for (const ParameterId id : model.ids)
      optimizer.visit(id, [&](const auto&, const auto& gradient) {
        for (std::size_t i = 0; i < gradient.extent(0); ++i)
          values.push_back(double(gradient(i)));
      });
    return values;
  }

  /// Marks in the order in which buckets go out, at least as far as a rank can.
  void mark(ShardedOptimizer& optimizer, std::size_t begin,
            std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i)
      optimizer.mark_ready(model.ids[model.ids.size() - 1 - i]);
  }

  /// Steps of which one is made twice, because ranks differ in it.
  std::vector<double> train(const std::shared_ptr<Communicator>& communicator,
                            bool odd_one_out, bool someone_differs) {
    ShardedOptimizer optimizer(communicator, model.set, options);
    model.write_start(optimizer);
    for (int step = 0; step < 4; ++step) {
      model.pass(optimizer, model.ids, step);
      const std::size_t all = model.ids.size();
      if (step == 1 && someone_differs) {
        if (odd_one_out) optimizer.group("default").set("learning_rate", 0.5);
        const auto gradients = all_gradients(optimizer);
        const auto parameters = read_all(optimizer);
        const std::size_t marked = step_is_whole ? all : all / 2;
        mark(optimizer, 0, marked);
        EXPECT_THROW(optimizer.step(), InvalidArgument);
        if (step_is_whole) {
          EXPECT_EQ(all_gradients(optimizer), gradients);
        }
        EXPECT_EQ(read_all(optimizer), parameters);
        optimizer.group("default").set("learning_rate", 0.125);
        // What was marked stands; what was not counted as zero, and is zero.
        for (std::size_t i = marked; i < all; ++i)
          model.pass(optimizer, std::span(&model.ids[all - 1 - i], 1), step);
        mark(optimizer, marked, all);
        EXPECT_THROW(optimizer.mark_ready(model.ids[all - 1]), InvalidArgument);
        if (!step_is_whole) {
          EXPECT_THROW(optimizer.group("default").set("learning_rate", 0.5),
                       InvalidArgument);
        }
      } else {
        mark(optimizer, 0, all);
      }
      optimizer.step();
    }
    return read_all(optimizer);
  }

  OverlapModel model;
  OptimizerOptions options;
  bool step_is_whole = true;  // everything is marked before it
};

TEST_P(OverlapAgreement, AStepThatEndsInADifferenceIsMadeAgain) {
  const auto communicator = world();
  if (communicator->size() == 1) return;  // nobody to differ from
  const auto expected = train(communicator, false, false);
  for (const bool whole : {true, false})
    for (const int odd : {0, communicator->size() - 1}) {
      step_is_whole = whole;
      EXPECT_EQ(train(communicator, communicator->rank() == odd, true),
                expected);
    }
}

TEST_P(OverlapAgreement, OrBegunAnew) {
  const auto communicator = world();
  if (communicator->size() == 1) return;
  ShardedOptimizer optimizer(communicator, model.set, options);
  optimizer.group("default").set("learning_rate", communicator->rank() + 1.0);
  mark(optimizer, 0, 5);
  EXPECT_THROW(optimizer.step(), InvalidArgument);
  optimizer.group("default").set("learning_rate", 1.0);
  optimizer.zero_gradients();
  for (const ParameterId id : model.ids)
    fill_gradient(optimizer, id, [](auto) { return 1.0; });
  mark(optimizer, 0, model.ids.size());
  optimizer.step();
  for (const double value : read_all(optimizer)) EXPECT_NE(value, 0.0);
}

// A difference in one data-parallel group stops all of them.
TEST_P(OverlapAgreement, StopsEveryPartOfAModel) {
  const auto ranks = world()->size();
  if (ranks % 2 != 0) return;
  const Grid grid(2);
  options.model_parallel = grid.model;
  const auto expected = train(grid.data, false, false);
  if (grid.data->size() == 1) return;
  const bool odd = grid.data->rank() == 1 && grid.model->rank() == 1;
  EXPECT_EQ(train(grid.data, odd, true), expected);
}

/// As of an MPI without MPI_THREAD_MULTIPLE.
class OneThread : public CountingCommunicator {
 public:
  using CountingCommunicator::CountingCommunicator;
  bool concurrent() const override { return false; }
};

// The thread sends over the model-parallel group as well.
TEST_P(OverlapAgreement, AThreadNeedsAModelGroupThatPermitsIt) {
  const auto ranks = world()->size();
  if (ranks % 2 != 0) return;
  const Grid grid(2);
  options.model_parallel = std::make_shared<OneThread>(grid.model);
  if (GetParam() == Progress::thread) {
    EXPECT_THROW(ShardedOptimizer(grid.data, model.set, options),
                 InvalidArgument);
    return;
  }
  options.progress = Progress::automatic;
  ShardedOptimizer optimizer(grid.data, model.set, options);
  EXPECT_NE(optimizer.describe().find("progress: calls"), std::string::npos);
}

std::string progress_name(const testing::TestParamInfo<Progress>& each) {
  return each.param == Progress::calls ? "calls" : "thread";
}

INSTANTIATE_TEST_SUITE_P(Progress, OverlapAgreement,
                         testing::Values(Progress::calls, Progress::thread),
                         progress_name);

}  // namespace
}  // namespace kzero::test
