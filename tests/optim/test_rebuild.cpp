// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Buckets in the order in which gradients came: nothing but places changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "io/optimizer_snapshot.hpp"
#include "optim/mixed_model.hpp"
#include "optim/overlap_model.hpp"
#include "support/allocation_counter.hpp"
#include "support/partitions.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

using Ids = std::vector<ParameterId>;

/// Of rank 0.
Ids broadcast_ids(Ids ids) {
  std::int64_t count = std::ssize(ids);
  MPI_Bcast(&count, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  ids.resize(std::size_t(count));
  for (ParameterId& id : ids)
    MPI_Bcast(&id.index, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  return ids;
}

/// The storages of these names, each where its last name is.
Ids storages(const ParameterSet& set, const Ids& names) {
  Ids order;
  for (const ParameterId id : names) {
    std::erase(order, set[id].storage);
    order.push_back(set[id].storage);
  }
  return order;
}

class Rebuild : public testing::Test {
 protected:
  ShardedOptimizer make(const MixedModel& model, const Partitioning& partition,
                        const Mode& mode = {}) const {
    return make(communicator, model, partition, mode);
  }
  ShardedOptimizer make(std::shared_ptr<Communicator> ranks_of,
                        const MixedModel& model, const Partitioning& partition,
                        const Mode& mode) const {
    OptimizerOptions options = mode.in(mixed_options(mixed_rules()));
    partition.set(options.plan);
    ShardedOptimizer optimizer(std::move(ranks_of), model.set(), options);
    model.write_start(optimizer);
    return optimizer;
  }

  /// In an order of this rank's own. Returns it.
  Ids mark_all(ShardedOptimizer& optimizer, unsigned seed) const {
    std::mt19937 random(seed * 31 + unsigned(communicator->rank()));
    Ids order;
    for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
      if (!optimizer.parameters()[{p}].frozen) order.push_back({p});
    std::shuffle(order.begin(), order.end(), random);
    for (const ParameterId id : order) optimizer.mark_ready(id);
    return order;
  }

  const std::shared_ptr<Communicator> communicator = world();
};

// Trained for some steps, rebuilt after some of them.
TEST_F(Rebuild, LeavesTheBitsOfTraining) {
  constexpr int steps = 5;
  const MixedModel model(mixed_parameters());
  SerialModel serial(model, mixed_rules(), communicator->size());
  for (int step = 0; step < steps; ++step) serial.step(step);
  const std::vector<std::vector<int>> after = {{0}, {1}, {3}, {0, 1, 2, 3, 4}};
  std::size_t turn = 0;
  for (const auto& [partition, mode] : all_ways()) {
    const std::vector<int>& rebuilt = after[turn++ % after.size()];
    SCOPED_TRACE(detail::concat(name_of(partition), ", ", name_of(mode),
                                ", first after ", rebuilt.front()));
    const MixedModel trained(mixed_parameters());
    auto optimizer = make(trained, partition, mode);
    std::mt19937 random(unsigned(turn) * 7 + unsigned(communicator->rank()));
    const Part whole[] = {{trained}};
    for (int step = 0; step < steps; ++step) {
      pass(optimizer, whole, step, random);
      EXPECT_TRUE(optimizer.step().updated());
      if (std::ranges::count(rebuilt, step) == 0) continue;
      // In step 2 rank 0 of two may mark nothing: the order of before.
      optimizer.rebuild_buckets();
    }
    expect_serial(optimizer, whole[0], serial);
    EXPECT_TRUE(padding_is_zero(optimizer));
    if (failed_on_any_rank()) return;
  }
}

TEST_F(Rebuild, FollowsTheOrderOfRank0) {
  for (const Partitioning& partition : all_partitions()) {
    SCOPED_TRACE(name_of(partition));
    const MixedModel model(mixed_parameters());
    auto optimizer = make(model, partition);
    EXPECT_TRUE(optimizer.readiness_order().empty());
    mark_all(optimizer, 4);
    optimizer.step();
    const Ids mine = mark_all(optimizer, 5);
    optimizer.step();
    EXPECT_EQ(optimizer.readiness_order(), mine);
    optimizer.step();  // without marks: the order of before
    EXPECT_EQ(optimizer.readiness_order(), mine);
    const Ids first = storages(model.set(), broadcast_ids(mine));
    optimizer.rebuild_buckets();
    EXPECT_EQ(optimizer.readiness_order(), mine);

    const Plan& plan = optimizer.plan();
    // Buffers of one type each: the order of those that share one.
    for (std::size_t a = 0; a < first.size(); ++a)
      for (std::size_t b = a + 1; b < first.size(); ++b) {
        const Placement& one = plan.placement(first[a]);
        const Placement& other = plan.placement(first[b]);
        if (one.buffer != other.buffer) continue;
        EXPECT_LE(one.bucket, other.bucket);
        // Owners come before the order within a bucket.
        if (partition.partition == Partition::elements) {
          EXPECT_LE(one.in_buffer.end, other.in_buffer.begin);
        }
      }
    // Buckets go out in the order of their last parameters.
    std::int64_t last = -1;
    for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
      std::int64_t ready = -1;
      for (std::size_t k = 0; k < first.size(); ++k)
        if (plan.placement(first[k]).bucket == b) ready = std::int64_t(k);
      EXPECT_GT(ready, last) << b;
      last = ready;
    }
    EXPECT_GT(plan.trained_buckets(), 10);

    PlanOptions options = optimizer.options().plan;
    options.ranks = communicator->size();
    EXPECT_EQ(std::ssize(options.order), model.size());
    const Plan expected = make_plan(model.set(), options);
    ASSERT_EQ(plan.buckets().size(), expected.buckets().size());
    for (std::int64_t p = 0; p < model.size(); ++p)
      EXPECT_EQ(plan.placement({p}).in_buffer,
                expected.placement({p}).in_buffer);
  }
}

// What rank 0 did not mark stays behind, in the order in which it lay.
TEST_F(Rebuild, PutsWhatWasNotMarkedBehind) {
  ParameterSet set;
  for (int p = 0; p < 6; ++p) set.add(detail::concat("p", p), {70});
  OptimizerOptions options;
  options.plan.bucket_bytes = 1;
  ShardedOptimizer optimizer(communicator, set, options);
  const bool root = communicator->rank() == 0;
  for (const std::int64_t p : root ? std::vector<std::int64_t>{1, 4}
                                   : std::vector<std::int64_t>{0, 5, 4, 3})
    optimizer.mark_ready({p});
  optimizer.step();
  optimizer.rebuild_buckets();
  std::vector<std::int64_t> order;
  for (const Bucket& bucket : optimizer.plan().buckets())
    order.push_back(optimizer.plan()
                        .buffers()[0]
                        .parameters[std::size_t(bucket.parameters.begin)]
                        .index);
  EXPECT_EQ(order, (std::vector<std::int64_t>{1, 4, 5, 3, 2, 0}));
}

TEST_F(Rebuild, MovesEverything) {
  for (const Partitioning& partition : all_partitions())
    for (const GatherMode gather :
         {GatherMode::at_step, GatherMode::overlapped}) {
      SCOPED_TRACE(name_of(partition));
      const MixedModel model(mixed_parameters());
      auto optimizer = make(model, partition, {.gather = gather});
      std::mt19937 random(3 + unsigned(communicator->rank()));
      const Part whole[] = {{model}};
      for (int step = 0; step < 3; ++step) {
        pass(optimizer, whole, step, random);
        optimizer.step();
      }
      mark_all(optimizer, 9);
      optimizer.step();
      // A micro-batch of the next step, another one on each rank.
      const auto micro_batch = [&](std::int64_t p, std::int64_t i) {
        return double(i % 31) / 8.0 - double(p) + 0.5 * communicator->rank();
      };
      for (std::int64_t p = 0; p < model.size(); ++p)
        if (!model.info(p).frozen && model.is_name_of(p, p))
          model.fill_gradient(optimizer, 0, p,
                              [&](auto i) { return micro_batch(p, i); });
      optimizer.wait_parameters();
      const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
      const auto state = optimizer.consolidate(0);

      optimizer.rebuild_buckets();

      EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
      EXPECT_EQ(optimizer.consolidate(0), state);
      EXPECT_TRUE(padding_is_zero(optimizer));
      for (std::int64_t p = 0; p < model.size(); ++p) {
        if (model.info(p).frozen || model.info(p).external) continue;
        const std::int64_t storage = model.info(p).storage.index;
        visit_dtype(model.info(p).gradient_dtype, [&](auto type) {
          using T = typename decltype(type)::type;
          const auto view = optimizer.gradient<T*>({p});
          for (std::int64_t i = 0; i < model.info(p).size; ++i)
            ASSERT_EQ(static_cast<double>(view(i)),
                      rounded_to(model.info(p).gradient_dtype,
                                 micro_batch(storage, i)))
                << model.info(p).name;
        });
      }
      EXPECT_TRUE(model.gaps_are_whole());
      EXPECT_THROW(optimizer.averaged_gradient<float>({0}), InvalidArgument);
      if (failed_on_any_rank()) return;
    }
}

TEST_F(Rebuild, TakesThePlannedMemory) {
  const auto messages = world(Backend::mpi);  // where there is staging
  for (const auto& [partition, mode] : all_ways()) {
    const MixedModel model(mixed_parameters());
    auto optimizer = make(messages, model, partition, mode);
    mark_all(optimizer, 1);
    optimizer.step();
    optimizer.rebuild_buckets();
    optimizer.step();
    const Plan& plan = optimizer.plan();
    std::vector<std::size_t> arrays;
    for (const Buffer& buffer : plan.buffers()) {
      std::size_t most = 0;
      for (const ParameterId id : buffer.parameters)
        most = std::max(
            most, std::size_t(model.info(id.index).group == "default" ? 2 : 1));
      arrays.push_back(most);
    }
    const Memory got = optimizer.memory();
    const Memory expected = plan.memory(communicator->rank(), arrays);
    EXPECT_EQ(got.parameters, expected.parameters);
    EXPECT_EQ(got.gradients, expected.gradients);
    EXPECT_EQ(got.averaged, expected.averaged);
    EXPECT_EQ(got.main, expected.main);
    EXPECT_EQ(got.moments, expected.moments);
    // The communicator that it was given keeps what it has grown to.
    EXPECT_GE(got.staging, expected.staging);
  }
}

TEST_F(Rebuild, IsRefusedBetweenSteps) {
  const MixedModel model(mixed_parameters());
  for (const Partitioning& partition : all_partitions()) {
    auto optimizer = make(model, partition);
    const bool root = communicator->rank() == 0;
    const auto rebuild = [&] { optimizer.rebuild_buckets(); };
    const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
    const auto expect_unchanged = [&] {
      EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
      EXPECT_TRUE(optimizer.options().plan.order.empty());
    };
    expect_refused({{"nothing was marked",
                     rebuild,
                     {"rebuild_buckets", "no order of readiness is known"},
                     Found::collective}},
                   expect_unchanged);
    if (root) optimizer.mark_ready({0});
    expect_refused({{"between mark and step on rank 0",
                     rebuild,
                     {"rebuild_buckets", "\"p0\"", "call that first"},
                     Found::collective}},
                   expect_unchanged);
    optimizer.step();
    if (communicator->size() > 1) {
      const Snapshot stepped = snapshot(optimizer, MPI_COMM_WORLD);
      if (communicator->rank() == communicator->size() - 1)
        optimizer.mark_ready({3});
      expect_refused(
          {{"between mark and step on another rank",
            rebuild,
            {"rebuild_buckets", "\"p3\"", "call that first"},
            Found::collective}},
          [&] {
            EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), stepped));
          });
      optimizer.step();
    }
    const Snapshot last = snapshot(optimizer, MPI_COMM_WORLD);
    optimizer.rebuild_buckets();
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), last));
  }
}

// For the new buckets, or for what the state is moved through; on one rank.
TEST_F(Rebuild, IsRefusedWithoutMemory) {
  ParameterSet set;
  set.add("small", {3000});
  set.add("large", {10'000});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 0.5, .momentum = 0.5};
  options.plan.bucket_bytes = 1;
  ShardedOptimizer optimizer(communicator, set, options);
  for (std::int64_t p = 0; p < 2; ++p)
    write_parameter(optimizer, {p}, [](auto i) { return double(i % 9); });
  for (std::int64_t p = 0; p < 2; ++p) {
    fill_gradient(optimizer, {p}, [](auto i) { return double(i % 5); });
    optimizer.mark_ready({p});
  }
  optimizer.step();
  const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
  const Plan plan = optimizer.plan();
  const std::int64_t bytes[] = {4 * plan.buffers()[0].size,
                                4 * plan.buckets()[0].range.size()};
  EXPECT_NE(bytes[0], bytes[1]);
  for (const std::int64_t each : bytes) {
    const bool refuses = communicator->rank() == communicator->size() - 1;
    const auto rebuild = [&] {
      refused_bytes = refuses ? std::size_t(each) : 0;
      try {
        optimizer.rebuild_buckets();
      } catch (...) {
        refused_bytes = 0;
        throw;
      }
      refused_bytes = 0;
    };
    expect_refused(
        {{"no memory",
          rebuild,
          {"rebuild_buckets", "memory for new buckets", std::to_string(each)},
          Found::collective}});
    EXPECT_EQ(optimizer.plan().placement({1}).bucket,
              plan.placement({1}).bucket);
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
  }
  optimizer.rebuild_buckets();
  EXPECT_EQ(optimizer.plan().placement({1}).bucket, 1);
  EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
}

}  // namespace
}  // namespace kzero::test
