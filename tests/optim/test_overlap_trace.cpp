// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// That transfers really run beside the caller's work, over a slow simulated
// link; and that nobody sees what has not come yet.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "optim/overlap_model.hpp"

namespace kzero::test {
namespace {

using std::chrono::milliseconds;

class OverlapTrace : public testing::TestWithParam<Progress> {
 protected:
  static constexpr std::int64_t layers = 8;
  static constexpr std::int64_t width = 1024;

  // 4 KiB a bucket of float32: about 5 ms each way.
  static SimulatedLink slow_link() { return {milliseconds(5), 4e6}; }

  /// Of the first bucket, whatever a read would wait for.
  static float value_of_last_layer(ShardedOptimizer& optimizer) {
    return optimizer.parameter<const float*>({layers - 1})(0);
  }

  ShardedOptimizer make(Schedule schedule = Schedule::after_backward,
                        GatherMode gather = GatherMode::overlapped,
                        const OptimizerOptions& given = {}) {
    ParameterSet set;
    for (std::int64_t l = 0; l < layers; ++l) {
      ParameterOptions options;
      options.chunk = l < layers / 2 ? 0 : 1;
      set.add(detail::concat("layers/", l), {width}, options);
    }
    OptimizerOptions options = Mode{schedule, gather, GetParam()}.in(given);
    options.rule = Sgd{.learning_rate = 1.0};
    options.plan.bucket_bytes = width * 4;
    options.trace = trace;
    return ShardedOptimizer(make_simulated_communicator(world(), slow_link()),
                            set, options);
  }

  /// A pass that takes its time, so that transfers can go on.
  void forward(ShardedOptimizer& optimizer) {
    for (std::int64_t l = 0; l < layers; ++l) {
      const auto view = optimizer.parameter<const float*>({l});
      for (std::int64_t i = 0; i < width; ++i)
        ASSERT_EQ(view(std::size_t(i)), expected) << "layer " << l;
      std::this_thread::sleep_for(milliseconds(3));
    }
  }

  void backward(ShardedOptimizer& optimizer) {
    for (std::int64_t l = layers - 1; l >= 0; --l) {
      std::this_thread::sleep_for(milliseconds(3));
      fill_gradient(optimizer, {l}, [](auto) { return 1.0; });
      optimizer.mark_ready({l});
    }
  }

  std::size_t place_of(TraceKind kind, std::int64_t index) const {
    const auto events = trace->events();
    for (std::size_t i = 0; i < events.size(); ++i)
      if (events[i].kind == kind && events[i].index == index) return i;
    ADD_FAILURE() << "no such event";
    return 0;
  }

  const std::shared_ptr<Trace> trace = std::make_shared<Trace>();
  float expected = 0.0f;
};

TEST_P(OverlapTrace, ReductionsRunBehindTheBackwardPass) {
  auto optimizer = make();
  backward(optimizer);
  const StepReport report = optimizer.step();
  EXPECT_LT(place_of(TraceKind::reduce_end, 0), place_of(TraceKind::ready, 0));
  // In layout order.
  for (std::int64_t b = 1; b < layers; ++b)
    EXPECT_LT(place_of(TraceKind::reduce_end, b - 1),
              place_of(TraceKind::reduce_end, b));
  EXPECT_GE(report.seconds(Phase::reduce), 0.0);
  EXPECT_GT(report.exposed_seconds(), 0.0);
}

// While the last layer that the backward pass meets is still computed, the
// first bucket is reduced, updated and back on every rank.
TEST_P(OverlapTrace, InterleavedBucketsAreSentBeforeTheLastMark) {
  for (const GatherMode gather :
       {GatherMode::at_step, GatherMode::overlapped}) {
    trace->clear();
    auto optimizer = make(Schedule::interleaved, gather);
    for (std::int64_t l = layers - 1; l > 0; --l) {
      fill_gradient(optimizer, {l}, [](auto) { return 1.0; });
      optimizer.mark_ready({l});
    }
    const auto first_has_come = [&] {
      return std::ranges::any_of(trace->events(), [](const TraceEvent& event) {
        return event.kind == TraceKind::gather_end && event.index == 0;
      });
    };
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!first_has_come() && std::chrono::steady_clock::now() < limit)
      optimizer.wait_parameter({0});
    EXPECT_EQ(value_of_last_layer(optimizer), -1.0f);
    fill_gradient(optimizer, {0}, [](auto) { return 1.0; });
    optimizer.mark_ready({0});
    optimizer.step();
    const auto last_mark = place_of(TraceKind::ready, 0);
    EXPECT_LT(place_of(TraceKind::reduce_end, 0), last_mark);
    EXPECT_LT(place_of(TraceKind::gather_end, 0), last_mark);
    EXPECT_EQ(read_all(optimizer),
              std::vector<double>(std::size_t(layers * width), -1.0));
  }
}

TEST_P(OverlapTrace, GathersRunAheadOfTheForwardPass) {
  auto optimizer = make();
  for (int step = 0; step < 3; ++step) {
    trace->clear();
    forward(optimizer);
    if (step > 0) {
      // The first layer is the last bucket.
      EXPECT_LT(place_of(TraceKind::read_end, layers - 1),
                place_of(TraceKind::gather_end, 0));
    }
    backward(optimizer);
    trace->clear();
    optimizer.step();
    expected -= 1.0f;
  }
  optimizer.wait_parameters();
  EXPECT_EQ(read_all(optimizer),
            std::vector<double>(std::size_t(layers * width), expected));
}

TEST_P(OverlapTrace, OneChunkIsUsedWhileTheNextIsUnderWay) {
  auto optimizer = make();
  backward(optimizer);
  trace->clear();
  optimizer.step();
  optimizer.finish_gather(0);
  const auto events = trace->events();
  std::map<std::pair<TraceKind, std::int64_t>, int> count;
  for (const TraceEvent& event : events) ++count[{event.kind, event.index}];
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::int64_t bucket = layers - 1 - l;
    const int ended = count[{TraceKind::gather_end, bucket}];
    if (l < layers / 2) {
      EXPECT_EQ(ended, 1) << "layer " << l;
    }
  }
  EXPECT_EQ((count[{TraceKind::gather_begin, layers / 2 - 1}]), 1);
  EXPECT_EQ((count[{TraceKind::gather_end, 0}]), 0);
  const auto first = optimizer.parameter<const float*>({0});
  EXPECT_EQ(first(0), -1.0f);
  optimizer.finish_gather(1);
  EXPECT_EQ(optimizer.parameter<const float*>({layers - 1})(0), -1.0f);
}

// Interleaved updates are gathered in the order of the layout, in which the
// chunk that is used first comes last.
TEST_P(OverlapTrace, AChunkIsWaitedForInAnyOrderOfGathers) {
  auto optimizer = make(Schedule::interleaved);
  const auto first = optimizer.parameter<const float*>({0});
  const auto last = optimizer.parameter<const float*>({layers - 1});
  backward(optimizer);
  optimizer.step();
  optimizer.finish_gather(0);
  EXPECT_EQ(first(width - 1), -1.0f);
  optimizer.finish_gather(1);
  EXPECT_EQ(last(width - 1), -1.0f);
}

// Chunks that are declared in another order than they are used in.
TEST_P(OverlapTrace, ChunksAreGatheredInTheirOrder) {
  ParameterSet set;
  for (std::int64_t l = 0; l < layers; ++l) {
    ParameterOptions options;
    options.chunk = int((layers - l) % 3);
    set.add(detail::concat("layers/", l), {width}, options);
  }
  OptimizerOptions options =
      Mode{Schedule::after_backward, GatherMode::overlapped, GetParam()}.in({});
  options.plan.bucket_bytes = width * 4;
  options.trace = trace;
  ShardedOptimizer optimizer(world(), set, options);
  optimizer.step();
  for (const int chunk : {0, 1, 2}) {
    optimizer.finish_gather(chunk);
    int ended = 0;
    for (const TraceEvent& event : trace->events())
      if (event.kind == TraceKind::gather_end &&
          optimizer.plan().buffer_of(event.index).chunk <= chunk)
        ++ended;
    int expected_ends = 0;
    for (std::int64_t b = 0; b < optimizer.plan().trained_buckets(); ++b)
      if (optimizer.plan().buffer_of(b).chunk <= chunk) ++expected_ends;
    EXPECT_EQ(ended, expected_ends) << "chunk " << chunk;
  }
  int last = 0;
  for (const TraceEvent& event : trace->events()) {
    if (event.kind != TraceKind::gather_begin) continue;
    const int chunk = optimizer.plan().buffer_of(event.index).chunk;
    EXPECT_GE(chunk, last);
    last = chunk;
  }
  EXPECT_EQ(last, 2);
  EXPECT_THROW(optimizer.finish_gather(3), InvalidArgument);
}

// Case 16: buckets used in another order than they come in.
TEST_P(OverlapTrace, ReadsInAnyOrderSeeNewValues) {
  auto optimizer = make();
  for (const std::int64_t first : {0, 5, 7, 2}) {
    backward(optimizer);
    optimizer.step();
    expected -= 1.0f;
    for (std::int64_t l = 0; l < layers; ++l) {
      const auto view =
          optimizer.parameter<const float*>({(first + 3 * l) % layers});
      EXPECT_EQ(view(0), expected);
      EXPECT_EQ(view(width - 1), expected);
    }
  }
}

TEST_P(OverlapTrace, SkippedStepsGatherNothing) {
  OptimizerOptions options;
  options.nonfinite = Nonfinite::skip;
  auto optimizer =
      make(Schedule::after_backward, GatherMode::overlapped, options);
  fill_gradient(optimizer, {0},
                [](auto) { return std::numeric_limits<double>::infinity(); });
  EXPECT_FALSE(optimizer.step().updated());
  for (const TraceEvent& event : trace->events())
    EXPECT_NE(event.kind, TraceKind::gather_begin);
  // The gradients are cleared.
  EXPECT_EQ(optimizer.gradient<float*>({0})(0), 0.0f);
}

TEST_P(OverlapTrace, NothingGoesOutBeforeTheLastMicroBatch) {
  auto optimizer = make();
  fill_gradient(optimizer, {layers - 1}, [](auto) { return 1.0; });
  optimizer.zero_gradients();
  for (int batch = 0; batch < 3; ++batch)
    for (std::int64_t l = layers - 1; l >= 0; --l) {
      const auto gradient = optimizer.gradient<float*>({l});
      for (std::size_t i = 0; i < std::size_t(width); ++i) gradient(i) += 1.0f;
    }
  EXPECT_TRUE(trace->events().empty());
  // A rank that has marked part of a bucket, or not the first one, waits.
  optimizer.mark_ready({0});
  for (const TraceEvent& event : trace->events())
    EXPECT_NE(event.kind, TraceKind::reduce_begin);
  for (std::int64_t l = layers - 1; l > 0; --l) optimizer.mark_ready({l});
  optimizer.step();
  EXPECT_EQ(read_all(optimizer),
            std::vector<double>(std::size_t(layers * width), -3.0));
}

std::string progress_name(const testing::TestParamInfo<Progress>& each) {
  return each.param == Progress::calls ? "calls" : "thread";
}

INSTANTIATE_TEST_SUITE_P(Progress, OverlapTrace,
                         testing::Values(Progress::calls, Progress::thread),
                         progress_name);

// Case 17: the same bits over a slow link as without overlap; the link holds
// poison where data has still to come, and watches what is sent.
TEST(OverSlowLink, SameBits) {
  const OverlapModel model;
  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = 0.05};
  options.plan.bucket_bytes = 400;
  const auto train = [&](std::shared_ptr<Communicator> communicator,
                         const OptimizerOptions& with) {
    ShardedOptimizer optimizer(communicator, model.set, with);
    model.write_start(optimizer);
    std::mt19937 random(unsigned(communicator->rank()));
    for (int step = 0; step < 6; ++step) {
      model.pass(optimizer, model.shuffled(random), step);
      for (const ParameterId id : model.shuffled(random))
        optimizer.mark_ready(id);
      optimizer.step();
    }
    return read_all(optimizer);
  };
  const auto expected = train(world(), options);
  for (const Mode& mode : all_modes())
    EXPECT_EQ(train(make_simulated_communicator(
                        world(), {std::chrono::microseconds(300), 20e6}),
                    mode.in(options)),
              expected)
        << name_of(mode);
}

}  // namespace
}  // namespace kzero::test
