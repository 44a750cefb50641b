// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Parameters in memory of the caller's own: start values, broadcasts, views and
// main parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "optim/optimizer_access.hpp"
#include "support/counting_communicator.hpp"
#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"

namespace kzero::test {
namespace {

using detail::concat;

/// Exact in 16 bits, different for every rank, parameter and element.
double start(int rank, std::int64_t parameter, std::int64_t i) {
  return double(rank * 17 + parameter * 5 + i % 40);
}

class OwnMemory : public testing::Test {
 protected:
  OwnMemory() {
    for (std::int64_t p = 0; p < count(); ++p) {
      owns[std::size_t(p)].add_to(model, concat("p", p), {.chunk = int(p % 2)});
      fill(p, [&](std::int64_t i) { return start(rank, p, i); });
    }
    model.add("bucket", {100}, typed(DType::bfloat16));
    frozen.fill([&](std::int64_t i) { return start(rank, 9, i); });
    model.add("frozen", frozen.array(), {.frozen = true});
    options.rule = AdamW{};
    options.plan.bucket_bytes = 1000;
    optimizer.emplace(communicator, model, options);
  }

  std::int64_t count() const { return std::ssize(owns); }

  const OwnArray& value(std::int64_t p) const {
    return owns[std::size_t(p)].value;
  }

  void fill(std::int64_t p, const std::function<double(std::int64_t)>& f) {
    value(p).fill(f);
  }

  void expect_values(int of_rank) {
    for (std::int64_t p = 0; p < count(); ++p) {
      for (std::int64_t i = 0; i < value(p).size(); ++i)
        ASSERT_EQ(value(p).get(i), start(of_rank, p, i)) << p << ", " << i;
      EXPECT_TRUE(owns[std::size_t(p)].gaps_are_whole());
    }
    for (std::int64_t i = 0; i < frozen.size(); ++i)
      ASSERT_EQ(frozen.get(i), start(of_rank, 9, i));
    EXPECT_TRUE(frozen.gaps_are_whole());
  }

  /// This rank's main parameters are f(parameter, element).
  template <class F>
  void expect_main(F&& f) {
    using detail::OptimizerAccess;
    for (std::int64_t p = 0; p < count(); ++p) {
      for (const Segment& segment : optimizer->segments({p})) {
        const void* main =
            OptimizerAccess::main_shard(*optimizer, segment.bucket);
        for (std::int64_t i = 0; i < segment.in_shard.size(); ++i) {
          const auto place = std::size_t(segment.in_shard.begin + i);
          const double got =
              model[{p}].dtype == DType::float64
                  ? static_cast<const double*>(main)[place]
                  : double(static_cast<const float*>(main)[place]);
          ASSERT_EQ(got, f(p, segment.in_parameter.begin + i))
              << p << ", " << i;
        }
      }
    }
  }

  const std::shared_ptr<CountingCommunicator> communicator =
      std::make_shared<CountingCommunicator>(world());
  const int rank = communicator->rank();
  const int ranks = communicator->size();
  const std::vector<Own> owns = {
      {{40, 30}, Order::left},
      {{7, 11, 3}, Order::gaps, DType::float64},
      {{25, 31}, Order::left, DType::bfloat16},
      {{1300}, Order::gaps, DType::float16},
      {{20, 40}, Order::right},
      {{0, 4}, Order::gaps},
      {{}, Order::right, DType::float64, DType::float32},
      {{2, 1, 3, 2, 1, 2, 3, 2}, Order::left}};
  const OwnArray frozen{DType::bfloat16, {70, 20}, Order::left};
  ParameterSet model;
  OptimizerOptions options;
  std::optional<ShardedOptimizer> optimizer;
};

TEST_F(OwnMemory, StartsWithTheCallersValues) {
  expect_values(rank);
  expect_main(
      [&](std::int64_t p, std::int64_t i) { return start(rank, p, i); });
}

TEST_F(OwnMemory, IsBroadcastFromAnyRoot) {
  for (int root = 0; root < ranks; ++root) {
    for (std::int64_t p = 0; p < count(); ++p)
      fill(p, [&](std::int64_t i) { return start(rank, p, i); });
    frozen.fill([&](std::int64_t i) { return start(rank, 9, i); });
    optimizer->broadcast_parameters(root);
    expect_values(root);
    expect_main(
        [&](std::int64_t p, std::int64_t i) { return start(root, p, i); });
  }
}

TEST_F(OwnMemory, IsWrittenOnTheRoot) {
  for (int root = 0; root < ranks; ++root) {
    optimizer->write_parameters(root, [&](ParameterWriter& writer) {
      for (std::int64_t p = 0; p < count(); ++p)
        fill(p, [&](std::int64_t i) { return start(root + 1, p, i); });
      // What has one stretch in C order can be seen through the writer's view.
      const auto view = writer.parameter<float**>({4});
      EXPECT_EQ(view.data(), value(4).array().data);
      view(3, 5) = float(start(root + 1, 4, 3 * 40 + 5));
      Kokkos::deep_copy(writer.parameter<bfloat16*>({count()}), bfloat16(3.0f));
      frozen.fill([&](std::int64_t i) { return start(root + 1, 9, i); });
    });
    expect_values(root + 1);
    expect_main(
        [&](std::int64_t p, std::int64_t i) { return start(root + 1, p, i); });
    EXPECT_EQ(read_parameter(*optimizer, {count()}),
              std::vector<double>(100, 3.0));
  }
}

TEST_F(OwnMemory, ReachesMainParametersByReload) {
  for (std::int64_t p = 0; p < count(); ++p)
    fill(p, [&](std::int64_t i) { return start(rank + 7, p, i); });
  expect_main(
      [&](std::int64_t p, std::int64_t i) { return start(rank, p, i); });
  optimizer->reload_main_from_parameters();
  expect_main(
      [&](std::int64_t p, std::int64_t i) { return start(rank + 7, p, i); });
}

TEST_F(OwnMemory, IsBroadcastThroughABoundedPiece) {
  class Watched : public CountingCommunicator {
   public:
    using CountingCommunicator::CountingCommunicator;
    void broadcast(void* data, std::int64_t bytes, int root,
                   Subject subject) override {
      largest = std::max(largest, bytes);
      CountingCommunicator::broadcast(data, bytes, root, subject);
    }
    std::int64_t largest = 0;
  };
  const auto watched = std::make_shared<Watched>(world());
  ParameterSet large;
  const Own own({300, 200}, Order::left, DType::float32);
  own.add_to(large, "large");
  own.value.fill([&](std::int64_t i) { return double(i + rank); });
  ShardedOptimizer other(watched, large, options);
  watched->largest = 0;
  other.broadcast_parameters(ranks - 1);
  EXPECT_LE(watched->largest, std::max(1000, ranks * 64 * 4));
  for (std::int64_t i = 0; i < own.value.size(); ++i)
    ASSERT_EQ(own.value.get(i), double(i + ranks - 1));
}

TEST_F(OwnMemory, InCOrderIsSeenInViews) {
  const auto view = optimizer->parameter<float**>({4});
  EXPECT_EQ(view.data(), value(4).array().data);
  EXPECT_EQ(view.extent(1), 40u);
  EXPECT_EQ(view(2, 7), start(rank, 4, 2 * 40 + 7));
  EXPECT_EQ(optimizer->gradient<float*>({4}).data(),
            owns[4].gradient.array().data);
  EXPECT_EQ(optimizer->parameter<double>({6}).data(), value(6).array().data);
  int visits = 0;
  optimizer->visit({4}, [&](const auto& seen, const auto& gradient) {
    EXPECT_EQ(static_cast<const void*>(seen.data()), value(4).array().data);
    EXPECT_EQ(static_cast<const void*>(gradient.data()),
              owns[4].gradient.array().data);
    ++visits;
  });
  EXPECT_EQ(visits, 1);
}

TEST_F(OwnMemory, OtherwiseIsNotSeenInViews) {
  const auto refusal = [](auto&& call) {
    return message_of<InvalidArgument>(call);
  };
  const std::string messages[] = {
      refusal([&] { optimizer->parameter<float*>({0}); }),
      refusal([&] { optimizer->parameter<float**>({0}); }),
      refusal([&] { optimizer->visit({0}, [](auto, auto) {}); })};
  for (const std::string& message : messages)
    for (const char* part :
         {" of parameter \"p0\"", "strides (1, 40)", "your own view"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_NE(refusal([&] {
              optimizer->gradient<double*>({1});
            }).find("the gradient of parameter \"p1\""),
            std::string::npos);
  // The type is looked at all the same.
  EXPECT_THROW(optimizer->parameter<double**>({4}), InvalidArgument);
  EXPECT_THROW(optimizer->gradient<float**>({count() + 1}), InvalidArgument);
}

TEST_F(OwnMemory, GradientsAreZeroed) {
  for (const Own& own : owns)
    own.gradient.fill([](std::int64_t) { return 2.0; });
  optimizer->zero_gradients();
  for (const Own& own : owns) {
    EXPECT_EQ(own.gradient.values(),
              std::vector<double>(std::size_t(own.gradient.size()), 0.0));
    EXPECT_TRUE(own.gaps_are_whole());
  }
  expect_values(rank);
}

TEST_F(OwnMemory, SecondNamesAreTheFirst) {
  ParameterSet tied;
  const Own own({5, 4}, Order::left);
  own.add_to(tied, "first");
  const auto second = tied.add("second", {5, 4}, {.tied_to = "first"});
  const auto third = own.add_to(tied, "third", {.tied_to = "first"});
  own.value.fill([](std::int64_t i) { return double(i); });
  ShardedOptimizer other(communicator, tied, options);
  EXPECT_EQ(other.plan().buckets().size(), 1u);
  for (const ParameterId id : {second, third})
    EXPECT_NE(message_of<InvalidArgument>([&] {
                other.parameter<float*>(id);
              }).find("strides (1, 5)"),
              std::string::npos);
  own.gradient.fill([](std::int64_t) { return 1.0; });
  other.zero_gradients();
  EXPECT_EQ(own.gradient.values(), std::vector<double>(20, 0.0));
}

TEST_F(OwnMemory, OfKokkosViewsLivesAsLongAsTheOptimizer) {
  Kokkos::View<float**, Kokkos::LayoutLeft> view("v", 10, 7);
  {
    ParameterSet set;
    set.add("v", view, Kokkos::View<float**, Kokkos::LayoutLeft>("g", 10, 7));
    std::optional<ShardedOptimizer> other(std::in_place, communicator, set,
                                          options);
    set = {};
    EXPECT_EQ(view.use_count(), 2);
    Kokkos::deep_copy(view, float(rank));
    other->broadcast_parameters(ranks - 1);
    EXPECT_EQ(view(9, 6), float(ranks - 1));
    other.reset();
  }
  EXPECT_EQ(view.use_count(), 1);
}

}  // namespace
}  // namespace kzero::test
