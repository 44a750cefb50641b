// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/checkpoint.hpp>
#include <string>

#include "io/checkpoint_file.hpp"
#include "io/checkpoint_model.hpp"
#include "io/file_without_time.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

TEST(Checkpoint, ReplacesTheOneBefore) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  auto optimizer = make_varied(world(), 600);
  write_start(optimizer, 1);
  for (int i = 0; i < 3; ++i) {
    train(optimizer, 1);
    save_checkpoint(optimizer, folder / "c.h5");
    EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
  }
  const Snapshot saved = snapshot(optimizer, MPI_COMM_WORLD);
  train(optimizer, 1);
  const CheckpointContent content = load_checkpoint(optimizer, folder / "c.h5");
  EXPECT_EQ(content.step, 3);
  EXPECT_TRUE(content.user.empty());
  EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), saved));
}

// Nothing tells the writer's buckets.
TEST(Checkpoint, HoldsWhatAnotherSaveOfItHolds) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  auto optimizer = make_varied(world(), 600);
  train(optimizer, 2);
  save_checkpoint(optimizer, folder / "one.h5");
  auto other = make_varied(world(), 5000);
  load_checkpoint(other, folder / "one.h5");
  save_checkpoint(other, folder / "two.h5");
  if (optimizer.communicator()->rank() == 0) {
    EXPECT_EQ(without_time(folder / "one.h5"), without_time(folder / "two.h5"));
  }
}

// Whichever engine writes, and whichever reads.
TEST(Checkpoint, IsTheSameFileFromEveryEngine) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  constexpr Engine engines[] = {Engine::gather, Engine::direct,
                                Engine::automatic};
  ShardedOptimizer optimizer = make_varied(world(), 600);
  write_start(optimizer, 1);
  train(optimizer, 2);
  const Snapshot saved = snapshot(optimizer, MPI_COMM_WORLD);
  save_checkpoint(optimizer, folder / "first.h5");
  for (const Engine writer : engines)
    for (const bool durable : {true, false}) {
      save_checkpoint(optimizer, folder / "c.h5",
                      {.engine = writer, .durable = durable});
      if (optimizer.communicator()->rank() == 0) {
        EXPECT_EQ(without_time(folder / "c.h5"),
                  without_time(folder / "first.h5"));
        detail::CheckpointReader(folder / "c.h5").verify_arrays();
      }
      for (const Engine reader : engines)
        for (const bool verify : {true, false}) {
          ShardedOptimizer other = make_varied(world(), 900);
          load_checkpoint(other, folder / "c.h5",
                          {.engine = reader, .verify = verify});
          EXPECT_TRUE(equal(snapshot(other, MPI_COMM_WORLD), saved));
        }
    }
}

// Frozen parameters of every partition: one rank has them in the file, all load
// them.
TEST(Checkpoint, BringsBackFrozenValues) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  for (const Partitioning& partition : all_partitions())
    for (const DType dtype : {DType::bfloat16, DType::float32}) {
      const auto make = [&](double value) {
        ParameterSet model;
        ParameterOptions options = typed(dtype);
        model.add("trained", {1000}, options);
        options.frozen = true;
        model.add("fixed", {701}, options);
        model.add("other", {3, 67}, options);
        OptimizerOptions with;
        partition.set(with.plan);
        ShardedOptimizer optimizer(world(), model, with);
        for (std::int64_t p = 0; p < 3; ++p)
          write_parameter(optimizer, {p},
                          [&](auto i) { return value + double(i % 7); });
        return optimizer;
      };
      ShardedOptimizer saved = make(2.0);
      save_checkpoint(saved, folder / "c.h5");
      for (const Engine engine : {Engine::direct, Engine::gather}) {
        ShardedOptimizer other = make(100.0);
        load_checkpoint(other, folder / "c.h5", {.engine = engine});
        EXPECT_TRUE(equal(snapshot(other, MPI_COMM_WORLD),
                          snapshot(saved, MPI_COMM_WORLD)));
        const auto differs = [&](ParameterId id, auto type) {
          using T = decltype(type);
          const auto view = other.parameter<const T*>(id);
          for (std::size_t i = 0; i < view.extent(0); ++i)
            if (double(view(i)) != 2.0 + double(i % 7)) return true;
          return false;
        };
        for (std::int64_t p = 0; p < 3; ++p)
          EXPECT_FALSE(dtype == DType::float32 ? differs({p}, float{})
                                               : differs({p}, bfloat16{}));
      }
    }
}

TEST(Checkpoint, LeavesNoAveragedGradient) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  auto optimizer = make_varied(world(), 600);
  train(optimizer, 1);
  save_checkpoint(optimizer, folder / "c.h5");
  const ParameterId five = optimizer.parameters().find("five").value();
  static_cast<void>(optimizer.averaged_gradient<float>(five));
  load_checkpoint(optimizer, folder / "c.h5");
  EXPECT_THROW(static_cast<void>(optimizer.averaged_gradient<float>(five)),
               InvalidArgument);
  train(optimizer, 1);
  static_cast<void>(optimizer.averaged_gradient<float>(five));
}

TEST(Checkpoint, KeepsEveryBitPattern) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  ParameterSet model;
  model.add("half", {65536}, typed(DType::float16));
  model.add("brain", {65536}, typed(DType::bfloat16));
  ShardedOptimizer optimizer(world(), model, {});
  optimizer.write_parameters(0, [](ParameterWriter& writer) {
    const auto half = writer.parameter<float16*>({0});
    const auto brain = writer.parameter<bfloat16*>({1});
    for (std::size_t i = 0; i < 65536; ++i)
      half(i).bits = brain(i).bits = static_cast<std::uint16_t>(i);
  });
  const Snapshot saved = snapshot(optimizer, MPI_COMM_WORLD);
  save_checkpoint(optimizer, folder / "c.h5");
  ShardedOptimizer other(world(), model, {});
  load_checkpoint(other, folder / "c.h5");
  EXPECT_TRUE(equal(snapshot(other, MPI_COMM_WORLD), saved));
}

// Cases 1, 3 and 28: empty shards and parameters join in.
TEST(Checkpoint, TakesShardsWithoutElements) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  for (const auto& sizes : {std::vector<std::int64_t>{5}, {8, 0, 24}, {0}}) {
    ParameterSet model;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      model.add(detail::concat("p", i), {sizes[i]});
    ShardedOptimizer optimizer(world(), model, {});
    write_start(optimizer, 1);
    train(optimizer, 2);
    const Snapshot saved = snapshot(optimizer, MPI_COMM_WORLD);
    save_checkpoint(optimizer, folder / "c.h5");
    ShardedOptimizer other(world(), model, {});
    load_checkpoint(other, folder / "c.h5");
    EXPECT_TRUE(equal(snapshot(other, MPI_COMM_WORLD), saved));
  }
}

// What is valid only together is set together.
TEST(Checkpoint, BringsBackHyperparametersInAnyOrder) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  const Sgd damped{.momentum = 0.9, .dampening = 0.5};
  const Sgd nesterov{.momentum = 0.8, .nesterov = true};
  const auto make = [](const Sgd& rule) {
    ParameterSet model;
    model.add("p", {3});
    OptimizerOptions options;
    options.rule = rule;
    return ShardedOptimizer(world(), model, options);
  };
  for (const auto& [from, to] :
       {std::pair(damped, nesterov), std::pair(nesterov, damped)}) {
    auto optimizer = make(from);
    save_checkpoint(optimizer, folder / "c.h5");
    auto other = make(to);
    load_checkpoint(other, folder / "c.h5");
    EXPECT_EQ(other.group("default").get("dampening"), from.dampening);
    EXPECT_EQ(other.group("default").get("nesterov"), from.nesterov ? 1 : 0);
    EXPECT_EQ(other.group("default").get("momentum"), from.momentum);
    train(other, 1);
  }
}

}  // namespace
}  // namespace kzero::test
