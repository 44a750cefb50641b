// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checkpoints of parameters in the caller's own memory: the same files.
#include <gtest/gtest.h>

#include <cstring>
#include <kzero/checkpoint.hpp>
#include <string>
#include <vector>

#include "io/checkpoint_model.hpp"
#include "io/file_without_time.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "storage/strided_copy.hpp"
#include "support/own_memory.hpp"

namespace kzero::test {
namespace {

ParameterOptions options_of(const ParameterInfo& info) {
  ParameterOptions options;
  options.dtype = info.dtype;
  options.gradient_dtype = info.gradient_dtype;
  options.group = info.group;
  options.frozen = info.frozen;
  return options;
}

/// All, or every other parameter of a model, in memory of its own.
class OwnModel {
 public:
  enum class Which { all, every_other };

  explicit OwnModel(const ParameterSet& model, Which which = Which::all) {
    for (const ParameterInfo& info : model.parameters()) {
      if (which == Which::every_other && set_.size() % 2 == 0) {
        set_.add(info.name, info.extents, options_of(info));
        continue;
      }
      const auto order = static_cast<Order>(owns_.size() % 3);
      owns_.emplace_back(info.extents, order, info.dtype, info.gradient_dtype);
      owns_.back().add_to(set_, info.name, options_of(info));
      owns_.back().value.fill([](std::int64_t i) { return double(i % 7); });
    }
  }

  const ParameterSet& set() const { return set_; }

  bool gaps_are_whole() const {
    for (const Own& own : owns_)
      if (!own.gaps_are_whole()) return false;
    return true;
  }

 private:
  std::vector<Own> owns_;
  ParameterSet set_;
};

Snapshot taken(ShardedOptimizer& optimizer) {
  return snapshot(optimizer, MPI_COMM_WORLD);
}

/// Main parameters that no file has: of 32 and 64 bits, they are the values.
bool main_is_value(ShardedOptimizer& optimizer) {
  using detail::OptimizerAccess;
  bool same = true;
  for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i) {
    const ParameterInfo& info = optimizer.parameters()[{i}];
    const std::int64_t width = size_of(info.dtype);
    if (width == 2) continue;
    std::vector<char> value(static_cast<std::size_t>(info.size * width));
    OptimizerAccess::read_value(optimizer, {i},
                                {0, optimizer.parameters()[{i}].size},
                                value.data());
    for (const Segment& segment : optimizer.segments({i}))
      same = same &&
             std::memcmp(static_cast<const char*>(OptimizerAccess::main_shard(
                             optimizer, segment.bucket)) +
                             segment.in_shard.begin * width,
                         value.data() + segment.in_parameter.begin * width,
                         static_cast<std::size_t>(segment.in_shard.size() *
                                                  width)) == 0;
  }
  return same;
}

class OwnMemoryFiles : public testing::Test {
 protected:
  OwnMemoryFiles() {
    write_start(buckets, 1);
    train(buckets, 3);
    save_checkpoint(buckets, folder / "buckets.h5");
  }

  ShardedOptimizer own(const OwnModel& model, std::int64_t bucket_bytes) {
    return ShardedOptimizer(
        world(), model.set(),
        varied_options(bucket_bytes, some_partition(made_++)));
  }

  bool is_root() { return buckets.communicator()->rank() == 0; }

  const ScratchFolder folder{MPI_COMM_WORLD};
  ShardedOptimizer buckets = make_varied(world(), 600);

 private:
  int made_ = 1;
};

TEST_F(OwnMemoryFiles, ComeFromBuckets) {
  for (const auto which : {OwnModel::Which::all, OwnModel::Which::every_other})
    for (const std::int64_t bucket_bytes : {300, 1 << 20}) {
      const OwnModel model(varied_model(), which);
      auto optimizer = own(model, bucket_bytes);
      EXPECT_FALSE(equal(taken(optimizer), taken(buckets)));
      load_checkpoint(optimizer, folder / "buckets.h5");
      EXPECT_TRUE(equal(taken(optimizer), taken(buckets)));
      EXPECT_TRUE(main_is_value(optimizer));
      EXPECT_TRUE(padding_is_zero(optimizer));
      EXPECT_TRUE(model.gaps_are_whole());
    }
}

TEST_F(OwnMemoryFiles, AreTheSameFiles) {
  for (const auto which :
       {OwnModel::Which::all, OwnModel::Which::every_other}) {
    const OwnModel model(varied_model(), which);
    auto optimizer = own(model, 900);
    load_checkpoint(optimizer, folder / "buckets.h5");
    save_checkpoint(optimizer, folder / "own.h5");
    EXPECT_TRUE(equal(taken(optimizer), taken(buckets)));
    if (is_root()) {
      EXPECT_EQ(without_time(folder / "own.h5"),
                without_time(folder / "buckets.h5"));
    }
  }
}

TEST_F(OwnMemoryFiles, GoToBuckets) {
  const OwnModel model(varied_model());
  {
    auto optimizer = own(model, 900);
    load_checkpoint(optimizer, folder / "buckets.h5");
    save_checkpoint(optimizer, folder / "own.h5");
  }
  auto other = make_varied(world(), 5000);
  write_start(other, 2);
  load_checkpoint(other, folder / "own.h5");
  train(other, 2);
  train(buckets, 2);
  EXPECT_TRUE(equal(taken(other), taken(buckets)));
}

TEST_F(OwnMemoryFiles, LeaveAloneWhatTheyDoNotHave) {
  ParameterSet longer = varied_model();
  longer.add("new", {20, 3}, typed(DType::float64));
  longer.add("new half", {50}, typed(DType::float16));
  const OwnModel model(longer);
  auto optimizer = own(model, 1 << 20);
  const Snapshot before = taken(optimizer);
  load_checkpoint(optimizer, folder / "buckets.h5", {.match = Match::partial});
  const Snapshot after = taken(optimizer);
  for (const auto& [name, value] : taken(buckets))
    EXPECT_EQ(after.at(name), value) << name;
  for (const auto& [name, value] : before)
    if (name.starts_with("new")) {
      EXPECT_EQ(after.at(name), value) << name;
    }
  EXPECT_TRUE(main_is_value(optimizer));
  EXPECT_TRUE(model.gaps_are_whole());
}

/// A model whose parameters are frozen, or the same ones trained.
ParameterSet other_model(bool frozen) {
  ParameterSet model;
  for (const DType dtype :
       {DType::bfloat16, DType::float32, DType::float16, DType::float64}) {
    ParameterOptions options = typed(dtype);
    options.frozen = frozen;
    model.add(std::string(to_string(dtype)), {70, 30}, options);
  }
  return model;
}

// The state starts anew, and main parameters from the values.
TEST_F(OwnMemoryFiles, OfFrozenParametersAreTrained) {
  const OwnModel frozen(other_model(true));
  {
    ShardedOptimizer optimizer(world(), frozen.set());
    optimizer.broadcast_parameters();
    save_checkpoint(optimizer, folder / "frozen.h5");
  }
  const OwnModel trained(other_model(false));
  ShardedOptimizer optimizer(world(), trained.set());
  for (const ParameterInfo& info : trained.set().parameters())
    detail::fill_zero(info.external->value, {0, info.size});
  optimizer.reload_main_from_parameters();
  load_checkpoint(optimizer, folder / "frozen.h5", {.match = Match::partial});
  const Snapshot after = taken(optimizer);
  EXPECT_TRUE(main_is_value(optimizer));
  EXPECT_TRUE(trained.gaps_are_whole());
  const auto five = bfloat16(5.0f);
  EXPECT_EQ(after.at("bfloat16|value").substr(10, 2), bytes_of(five));
  EXPECT_EQ(after.at("bfloat16|main").substr(20, 4), bytes_of(5.0f));
  EXPECT_EQ(after.at("float16|main").substr(20, 4), bytes_of(5.0f));
  EXPECT_EQ(after.at("float64|value").substr(40, 8), bytes_of(5.0));
}

TEST_F(OwnMemoryFiles, OfFrozenParametersComeBack) {
  const OwnModel frozen(other_model(true));
  ShardedOptimizer optimizer(world(), frozen.set());
  save_checkpoint(optimizer, folder / "frozen.h5");
  const Snapshot saved = taken(optimizer);
  ShardedOptimizer other(world(), other_model(true));
  load_checkpoint(other, folder / "frozen.h5");
  EXPECT_TRUE(equal(taken(other), saved));
}

}  // namespace
}  // namespace kzero::test
