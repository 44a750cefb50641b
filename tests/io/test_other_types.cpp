// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checkpoints of a model in another number type: OtherType::convert.
#include <gtest/gtest.h>

#include <kzero/checkpoint.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/scratch_folder.hpp"
#include "io/typed_model.hpp"

namespace kzero::test {
namespace {

constexpr LoadOptions convert{.other_type = OtherType::convert};
constexpr LoadOptions partial{.match = Match::partial};
constexpr LoadOptions partial_convert{.match = Match::partial,
                                      .other_type = OtherType::convert};

Snapshot taken(ShardedOptimizer& optimizer) {
  return snapshot(optimizer, MPI_COMM_WORLD);
}

/// The same on every rank.
OptimizerState some_state(DType dtype, std::int64_t last = 257) {
  auto optimizer = TypedModel(dtype, Memory::buckets, last).make(600);
  std::optional<OptimizerState> state;
  for (int rank = 0; rank < optimizer.communicator()->size(); ++rank) {
    auto own = optimizer.consolidate(rank);
    if (own) state = std::move(own);
  }
  fill(*state);
  state->steps = 7;
  return *state;
}

class OtherTypes : public testing::TestWithParam<DType> {
 protected:
  /// Saves a state of this type.
  OptimizerState save(DType dtype, std::int64_t last = 257) {
    const OptimizerState state = some_state(dtype, last);
    auto optimizer = TypedModel(dtype, Memory::buckets, last).make(600);
    optimizer.load_state(state, 0);
    save_checkpoint(optimizer, path);
    return state;
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
};

class OtherTypesOf : public OtherTypes {};

TEST_P(OtherTypesOf, AreConverted) {
  const OptimizerState file = save(GetParam());
  for (const DType dtype : all_types)
    for (const Memory memory : {Memory::buckets, Memory::own})
      for (const Partitioning& partition : all_partitions())
        for (const Engine engine : {Engine::direct, Engine::gather}) {
          SCOPED_TRACE(std::string(to_string(dtype)) + " " +
                       name_of(partition));
          LoadOptions options = convert;
          options.engine = engine;
          const TypedModel model(dtype, memory);
          auto optimizer = model.make(300, partition);
          EXPECT_EQ(load_checkpoint(optimizer, path, options).step, 7);
          EXPECT_TRUE(has(taken(optimizer), converted(file, dtype)));
          EXPECT_TRUE(padding_is_zero(optimizer));
          EXPECT_TRUE(model.gaps_are_whole());
          EXPECT_EQ(optimizer.steps(), 7);
        }
}

TEST_P(OtherTypesOf, AreConvertedInPart) {
  const OptimizerState file = save(GetParam());
  for (const DType dtype : all_types) {
    auto optimizer = TypedModel(dtype, Memory::buckets).make(1 << 20);
    const CheckpointContent content =
        load_checkpoint(optimizer, path, partial_convert);
    EXPECT_TRUE(has(taken(optimizer), converted(file, dtype)));
    EXPECT_TRUE(content.misshaped.empty());
    EXPECT_TRUE(content.missing.empty());
  }
}

TEST_P(OtherTypesOf, AreConvertedFromMemory) {
  const OptimizerState file = some_state(GetParam());
  for (const DType dtype : all_types)
    for (const Memory memory : {Memory::buckets, Memory::own}) {
      auto optimizer = TypedModel(dtype, memory).make(300);
      const int last = optimizer.communicator()->size() - 1;
      optimizer.load_state(file, last, convert);
      EXPECT_TRUE(has(taken(optimizer), converted(file, dtype)));
    }
}

// The main parameters of the caller's memory come too: they decide what the
// next step does.
TEST_P(OtherTypesOf, GoOnTheSameWhereverTheyLie) {
  {
    auto saving = TypedModel(GetParam(), Memory::buckets).make(600);
    write_start(saving, 1);
    train(saving, 3);
    save_checkpoint(saving, path);
  }
  for (const DType dtype : all_types) {
    const TypedModel model(dtype, Memory::own);
    auto own = model.make(300);
    disturb(own);
    auto buckets = TypedModel(dtype, Memory::buckets).make(1000);
    load_checkpoint(own, path, convert);
    load_checkpoint(buckets, path, convert);
    for (ShardedOptimizer* each : {&own, &buckets})
      each->step();  // without gradients: weight decay and moments
    EXPECT_TRUE(equal(taken(own), taken(buckets)));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OtherTypesOf, testing::ValuesIn(all_types),
                         [](const auto& dtype) {
                           return std::string(to_string(dtype.param));
                         });

TEST_F(OtherTypes, ComeBackFromAWiderOne) {
  for (const DType narrow : {DType::float16, DType::bfloat16})
    for (const DType wide : {DType::float32, DType::float64}) {
      auto first = TypedModel(narrow, Memory::buckets).make(600);
      write_start(first, 1);
      train(first, 3);
      save_checkpoint(first, path);
      auto second = TypedModel(wide, Memory::own).make(900);
      load_checkpoint(second, path, convert);
      save_checkpoint(second, folder / "wide.h5");
      auto third = TypedModel(narrow, Memory::buckets).make(300);
      load_checkpoint(third, folder / "wide.h5", convert);
      EXPECT_TRUE(equal(taken(third), taken(first)));
      train(first, 2);
      train(third, 2);
      EXPECT_TRUE(equal(taken(third), taken(first)));
    }
}

// More than one piece of the file, in every kind of memory.
TEST_F(OtherTypes, ComeInPieces) {
  constexpr std::int64_t size = 300007;
  for (const auto& [from, to] : {std::pair(DType::bfloat16, DType::float64),
                                 {DType::float64, DType::bfloat16},
                                 {DType::float32, DType::float16}}) {
    const OptimizerState file = save(from, size);
    for (const Memory memory : {Memory::buckets, Memory::own})
      for (const Engine engine : {Engine::direct, Engine::gather}) {
        LoadOptions options = convert;
        options.engine = engine;
        auto optimizer = TypedModel(to, memory, size).make(1 << 20);
        load_checkpoint(optimizer, path, options);
        EXPECT_TRUE(has(taken(optimizer), converted(file, to)));
      }
  }
}

TEST_F(OtherTypes, AreRefusedOtherwise) {
  save(DType::bfloat16);
  auto optimizer = TypedModel(DType::float32, Memory::buckets).make(600);
  write_start(optimizer, 1);
  const Snapshot before = taken(optimizer);
  EXPECT_TRUE(says(checkpoint_error([&] { load_checkpoint(optimizer, path); }),
                   {"c.h5", "\"matrix\" is bfloat16, expected float32",
                    "LoadOptions::other_type = OtherType::convert",
                    "parameters of another number type", "Match::partial"}));
  EXPECT_TRUE(equal(taken(optimizer), before));
  const CheckpointContent content = load_checkpoint(optimizer, path, partial);
  EXPECT_EQ(content.misshaped,
            (std::vector<std::string>{"matrix", "none", "scalar", "no rows",
                                      "frozen", "last"}));
  EXPECT_EQ(taken(optimizer).at("matrix|value"), before.at("matrix|value"));
}

TEST_F(OtherTypes, AreFoundByLatest) {
  const OptimizerState file = save(DType::bfloat16);
  auto optimizer = TypedModel(DType::float32, Memory::buckets).make(600);
  EXPECT_TRUE(
      says(checkpoint_error([&] { load_latest(optimizer, folder.path()); }),
           {"LoadOptions::other_type"}));
  const auto content = load_latest(optimizer, folder.path(), convert);
  ASSERT_TRUE(content.has_value());
  EXPECT_TRUE(has(taken(optimizer), converted(file, DType::float32)));
}

// Shapes, names and rules are as strict as ever.
TEST_F(OtherTypes, DoNotExcuseTheRest) {
  save(DType::bfloat16);
  auto optimizer = TypedModel(DType::float32, Memory::buckets, 99).make(600);
  const std::string message =
      checkpoint_error([&] { load_checkpoint(optimizer, path, convert); });
  EXPECT_TRUE(says(message, {"\"last\" has the shape (257), expected (99)"}));
  EXPECT_EQ(message.find("other_type"), message.npos);
}

ShardedOptimizer single(DType dtype, bool frozen) {
  ParameterSet model;
  ParameterOptions options = typed(dtype);
  options.frozen = frozen;
  model.add("p", {70}, options);
  OptimizerOptions plan;
  plan.plan.bucket_bytes = 64;
  return ShardedOptimizer(world(), model, plan);
}

TEST_F(OtherTypes, FreezeAndThaw) {
  for (const bool was_frozen : {false, true})
    for (const auto& [from, to] : {std::pair(DType::bfloat16, DType::float32),
                                   {DType::bfloat16, DType::float16},
                                   {DType::float64, DType::bfloat16}}) {
      auto saving = single(from, was_frozen);
      write_start(saving, 1);
      train(saving, 2);
      save_checkpoint(saving, path);
      auto state = saving.consolidate(0);
      auto optimizer = single(to, !was_frozen);
      EXPECT_TRUE(says(
          checkpoint_error([&] { load_checkpoint(optimizer, path, convert); }),
          {"\"p\" arrays", "\"exp_avg\""}));
      load_checkpoint(optimizer, path, partial_convert);
      const Snapshot after = taken(optimizer);
      EXPECT_EQ(optimizer.update_count({0}), 0);
      if (!state) continue;
      Snapshot expected = converted(state->parameter("p"), to, !was_frozen);
      expected["p|updates"] = bytes_of(std::int64_t{0});
      EXPECT_TRUE(has(after, expected));
      if (!was_frozen) continue;
      EXPECT_EQ(after.at("p|exp_avg").find_first_not_of('\0'),
                std::string::npos);
    }
}

/// Changes one bit of an array.
void damage(const std::filesystem::path& path, const std::string& parameter,
            const std::string& array) {
  std::string bytes = file_bytes(path);
  const detail::CheckpointReader reader(path);
  const auto& parameters = reader.layout().parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (std::size_t k = 0; k < parameters[i].arrays.size(); ++k)
      if (parameters[i].name == parameter &&
          parameters[i].arrays[k].name == array)
        bytes[std::size_t(reader.stored().arrays[i][k].place) + 5] ^= 16;
  write_bytes(path, bytes);
}

// The checksums are those of the file's bytes, before they are converted.
TEST_F(OtherTypes, AreVerifiedAsTheyLieInTheFile) {
  for (const Engine engine : {Engine::direct, Engine::gather}) {
    const OptimizerState file = save(DType::bfloat16);
    auto optimizer = TypedModel(DType::float32, Memory::own).make(300);
    if (world()->rank() == 0) damage(path, "last", "value");
    LoadOptions options = convert;
    options.engine = engine;
    load_checkpoint(optimizer, path, options);  // which is not looked at
    EXPECT_TRUE(has(taken(optimizer), converted(file, DType::float32)));
    if (world()->rank() == 0) damage(path, "last", "main");
    EXPECT_TRUE(says(
        checkpoint_error([&] { load_checkpoint(optimizer, path, options); }),
        {"\"main\" of the parameter \"last\" is damaged",
         "partly overwritten"}));
    options.verify = false;
    load_checkpoint(optimizer, path, options);
  }
}

}  // namespace
}  // namespace kzero::test
