// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Parameters that the ranks of a node have in common: what reads and writes
// them, and that they are there once. That steps give the same bits is in
// test_everything_together.
#include <gtest/gtest.h>

#include "optim/overlap_model.hpp"
#include "support/mapping.hpp"

namespace kzero::test {
namespace {

class SharedParameters : public testing::Test {
 protected:
  static OptimizerOptions shared() {
    OptimizerOptions options;
    options.plan.bucket_bytes = 600;
    options.share_parameters = true;
    return options;
  }

  void expect_same(ShardedOptimizer& got, ShardedOptimizer& expected) const {
    EXPECT_EQ(read_all(got), read_all(expected));
  }

  const std::shared_ptr<Communicator> communicator = world();
  const int ranks = communicator->size();
  const int rank = communicator->rank();
};

TEST_F(SharedParameters, AreReadThroughConstViewsAlone) {
  OverlapModel model;
  ShardedOptimizer optimizer(communicator, model.set, shared());
  for (const ParameterId id : model.ids) {
    const auto& info = optimizer.parameters()[id];
    visit_dtype(info.dtype, [&]<class T>(std::type_identity<T>) {
      EXPECT_EQ(optimizer.parameter<const T*>(id).extent(0),
                std::size_t(info.size));
      const std::string message = message_of<InvalidArgument>(
          [&] { (void)optimizer.parameter<T*>(id); });
      EXPECT_NE(message.find("parameter \"" + info.name +
                             "\", which the ranks of a node have in common"),
                std::string::npos)
          << message;
    });
    EXPECT_THROW(optimizer.visit(id, [](auto, auto) {}), InvalidArgument);
  }
  // They start as zeros.
  for (const double value : read_all(optimizer)) EXPECT_EQ(value, 0.0);
}

// Each rank has other values in mind; those of the root are everybody's.
TEST_F(SharedParameters, OfRanksWithDifferentSeedsAreThoseOfTheRoot) {
  OverlapModel model;
  ShardedOptimizer optimizer(communicator, model.set, shared());
  for (int root = 0; root < ranks; ++root) {
    optimizer.write_parameters(root, [&](ParameterWriter& writer) {
      for (const ParameterId id : model.ids)
        writer.visit(id, [&](const auto& view) {
          fill_view(view, [&](auto i) { return rank + double(i % 3) / 4.0; });
        });
    });
    for (const ParameterId id : model.ids) {
      const auto values = read_parameter(optimizer, id);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], root + double(i % 3) / 4.0);
    }
    optimizer.broadcast_parameters(root);
  }
}

TEST_F(SharedParameters, GoThroughAllThatMovesThem) {
  OverlapModel model;
  OptimizerOptions options = shared();
  for (const GatherMode gather :
       {GatherMode::at_step, GatherMode::overlapped}) {
    options.gather = gather;
    options.share_parameters = true;
    ShardedOptimizer optimizer(communicator, model.set, options);
    options.share_parameters = false;
    ShardedOptimizer expected(communicator, model.set, options);
    std::mt19937 random(unsigned(rank) + 3);
    const auto train = [&](int step) {
      const auto order = model.shuffled(random);
      for (ShardedOptimizer* each : {&optimizer, &expected}) {
        model.pass(*each, order, step);
        for (const ParameterId id : order) each->mark_ready(id);
        each->step();
      }
      expect_same(optimizer, expected);
    };
    for (ShardedOptimizer* each : {&optimizer, &expected})
      model.write_start(*each);
    for (int step = 0; step < 2; ++step) train(step);
    optimizer.rebuild_buckets();
    expected.rebuild_buckets();
    expect_same(optimizer, expected);
    train(2);
    ParameterSet more;
    more.add("more", {77}, typed(DType::bfloat16));
    for (ShardedOptimizer* each : {&optimizer, &expected}) {
      each->add_group("more", more, Sgd{});
      write_parameter(*each, {9}, [](auto i) { return 0.125 * double(i); });
    }
    expect_same(optimizer, expected);
    const auto state = optimizer.consolidate(ranks - 1);
    for (int step = 3; step < 5; ++step) {
      for (ShardedOptimizer* each : {&optimizer, &expected})
        fill_gradient(*each, {9}, [](auto i) { return double(i % 4); });
      for (ShardedOptimizer* each : {&optimizer, &expected}) each->step();
      expect_same(optimizer, expected);
    }
    optimizer.load_state(state, ranks - 1);
    expected.load_state(state, ranks - 1);
    expect_same(optimizer, expected);
    communicator->barrier({"test"});
  }
}

// A buffer of whole pages ends where another can begin, and so do empty shards.
TEST_F(SharedParameters, InBuffersOfWholePages) {
  for (const Partitioning& partition : all_partitions())
    for (const std::int64_t sizes : {1024, 2048}) {
      SCOPED_TRACE(name_of(partition));
      ParameterSet set;
      for (int i = 0; i < 4; ++i) {
        ParameterOptions kind;
        kind.chunk = i / 2;
        set.add(detail::concat("w", i), {sizes}, kind);
      }
      OptimizerOptions options;
      options.rule = Sgd{.learning_rate = 1.0};
      options.share_parameters = true;
      partition.set(options.plan);
      ShardedOptimizer optimizer(communicator, set, options);
      for (int step = 0; step < 3; ++step) {
        for (int i = 0; i < 4; ++i)
          fill_gradient(optimizer, {i}, [&](auto) { return -1.0; });
        optimizer.step();
      }
      for (const double value : read_all(optimizer)) ASSERT_EQ(value, 3.0);
    }
}

TEST_F(SharedParameters, AreSharedByAllRanksOrNone) {
  if (ranks == 1) GTEST_SKIP() << "for more than one rank";
  OverlapModel model;
  OptimizerOptions options = shared();
  options.share_parameters = rank > 0;
  const std::string message = message_of<InvalidArgument>(
      [&] { ShardedOptimizer(communicator, model.set, options); });
  EXPECT_NE(message.find("share_parameters"), std::string::npos) << message;
}

// By the operating system's figures.
TEST_F(SharedParameters, AreThereOnceANode) {
  constexpr std::int64_t elements = std::int64_t{16} << 20;
  ParameterSet set;
  set.add("w", {elements}, typed(DType::bfloat16));
  OptimizerOptions options;
  options.share_parameters = true;
  ShardedOptimizer optimizer(communicator, set, options);
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_gradients();
    optimizer.step();
  }
  const auto view = optimizer.parameter<const bfloat16*>({0});
  double sum = 0;  // every rank touches all of it
  for (std::int64_t i = 0; i < elements; i += 512)
    sum += static_cast<double>(view(i));
  EXPECT_EQ(sum, 0.0);
  communicator->barrier({"test"});
  std::int64_t bytes = mapping_bytes(view.data() + elements / 2, "Pss");
  ASSERT_GT(bytes, 0);
  EXPECT_LE(bytes, optimizer.memory().parameters + (1 << 20));
  communicator->barrier({"test"});
  communicator->all_reduce_sum(std::span(&bytes, 1), {"test"});
  const std::int64_t nodes = (ranks + communicator->sharing().ranks - 1) /
                             communicator->sharing().ranks;
  EXPECT_NEAR(double(bytes), double(nodes * elements * 2),
              double(elements) / 50);
  communicator->barrier({"test"});
}

}  // namespace
}  // namespace kzero::test
