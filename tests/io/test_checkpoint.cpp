// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <algorithm>
#include <kzero/checkpoint.hpp>
#include <limits>
#include <string>

#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "io/sub_communicator.hpp"

namespace kzero::test {
namespace {

UserData some_user_data() {
  return {{"epoch", std::int64_t{12}},
          {"note", std::string("größer\0!", 9)},
          {"files", std::vector<std::string>{"a", ""}},
          {"image", UserArray<float>{{2, 1}, {0.5f, -1.f}}}};
}

// Case 20. Saved on 4 ranks, loaded on any number of them with buckets of
// another size: the same bits, and the same after more steps.
TEST(Checkpoint, ContinuesOnAnyNumberOfRanks) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  Snapshot saved;
  Snapshot later;
  const int saving = std::min(4, world_size());
  {
    const SubCommunicator few(saving);
    if (few.member()) {
      auto optimizer = make_varied(few.make(), 600);
      write_start(optimizer, 1);
      train(optimizer, 5);
      optimizer.group("plain").set("learning_rate", 0.125);
      save_checkpoint(optimizer, folder / "c.h5", {some_user_data()});
      saved = snapshot(optimizer, few.get());
      train(optimizer, 3);
      later = snapshot(optimizer, few.get());
    }
  }
  broadcast(saved, MPI_COMM_WORLD);
  broadcast(later, MPI_COMM_WORLD);
  ASSERT_FALSE(equal(saved, later));

  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    if (ranks > world_size()) continue;
    const SubCommunicator some(ranks);
    if (!some.member()) continue;
    for (const std::int64_t bucket_bytes : {600, 100, 1 << 20}) {
      auto optimizer = make_varied(some.make(), bucket_bytes);
      write_start(optimizer, 2);
      train(optimizer, 1);
      optimizer.group("momentum").set("momentum", 0.5);
      const CheckpointContent content =
          load_checkpoint(optimizer, folder / "c.h5");
      EXPECT_TRUE(equal(snapshot(optimizer, some.get()), saved)) << ranks;
      EXPECT_TRUE(padding_is_zero(optimizer));
      EXPECT_EQ(content.step, 5);
      EXPECT_EQ(content.world_size, saving);
      EXPECT_EQ(content.library_version, version());
      EXPECT_EQ(content.created.size(), 20u) << content.created;
      EXPECT_EQ(content.user, some_user_data());
      train(optimizer, 3);
      EXPECT_TRUE(equal(snapshot(optimizer, some.get()), later)) << ranks;
    }
  }
}

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

// Files do not tell how many ranks have written them.
TEST(Checkpoint, HoldsWhatAnotherSaveOfItHolds) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  auto optimizer = make_varied(world(), 600);
  train(optimizer, 2);
  save_checkpoint(optimizer, folder / "one.h5");
  auto other = make_varied(world(), 5000);
  load_checkpoint(other, folder / "one.h5");
  save_checkpoint(other, folder / "two.h5");
  if (optimizer.communicator()->rank() == 0) {
    // But for the time of writing, which is of the same length.
    const std::string one = file_bytes(folder / "one.h5");
    const std::string two = file_bytes(folder / "two.h5");
    ASSERT_EQ(one.size(), two.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < one.size(); ++i) different += one[i] != two[i];
    EXPECT_LE(different, 20u);
  }
  MPI_Barrier(MPI_COMM_WORLD);
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
