// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The whole state in the memory of one rank, and from there into any other
// number of ranks and buckets.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <kzero/kzero.hpp>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint_model.hpp"
#include "io/scratch_folder.hpp"
#include "io/state_snapshot.hpp"
#include "io/sub_communicator.hpp"
#include "support/own_memory.hpp"

namespace kzero::test {
namespace {

/// Ways to cut the model: a line each.
std::vector<PlanOptions> plans() {
  return {
      {.bucket_bytes = 1},
      {.bucket_bytes = 600},
      {.bucket_bytes = 1 << 20},
      {.partition = Partition::parameters, .bucket_bytes = 600},
      {.partition = Partition::buckets, .bucket_bytes = 600},
      {.partition = Partition::buckets, .divide = true, .bucket_bytes = 600},
  };
}

/// Every type and rule, with a scaler.
ShardedOptimizer make(std::shared_ptr<Communicator> communicator,
                      const PlanOptions& plan,
                      const ParameterSet& model = varied_model()) {
  OptimizerOptions options = varied_options(0);
  options.plan = plan;
  options.scaler = Scaler::dynamic(
      {.initial_scale = 4.0, .growth_interval = 3, .hysteresis = 2});
  return ShardedOptimizer(std::move(communicator), model, options);
}

/// Five steps, and one more that is skipped: rank 0's gradients overflow.
void train_and_overflow(ShardedOptimizer& optimizer) {
  write_start(optimizer, 1);
  train(optimizer, 3);
  const bool root = optimizer.communicator()->rank() == 0;
  fill_gradient(optimizer, {6}, [&](std::int64_t) {
    return root ? std::numeric_limits<double>::infinity() : 0.0;
  });
  EXPECT_FALSE(optimizer.step().updated());
  train(optimizer, 2);
  optimizer.group("plain").set("learning_rate", 0.125);
}

int rank_of(const ShardedOptimizer& optimizer) {
  return optimizer.communicator()->rank();
}

TEST(Consolidate, HasEverythingOnAnyRoot) {
  for (const PlanOptions& plan : plans()) {
    auto optimizer = make(world(), plan);
    train_and_overflow(optimizer);
    const Snapshot expected = snapshot(optimizer, MPI_COMM_WORLD);
    for (int root = 0; root < world_size(); ++root) {
      const auto state = optimizer.consolidate(root);
      ASSERT_EQ(state.has_value(), rank_of(optimizer) == root);
      if (!state) continue;
      EXPECT_TRUE(equal(snapshot_of(*state), expected)) << root;
    }
    // Nothing has changed.
    EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), expected));
    EXPECT_TRUE(padding_is_zero(optimizer));
  }
}

TEST(Consolidate, HasNamesShapesTypesAndRules) {
  std::optional<OptimizerState> state;
  {
    auto optimizer = make(world(), plans()[1]);
    train_and_overflow(optimizer);
    state = optimizer.consolidate(0);
  }
  if (!state) return;  // of this rank
  const ParameterSet model = varied_model();
  ASSERT_EQ(state->parameters.size(), std::size_t(model.size()));
  for (std::int64_t i = 0; i < model.size(); ++i) {
    const ParameterInfo& info = model[{i}];
    const ParameterState& parameter = state->parameters[std::size_t(i)];
    EXPECT_EQ(parameter.name, info.name);
    EXPECT_EQ(parameter.group, info.group);
    EXPECT_EQ(parameter.extents, info.extents);
    EXPECT_EQ(parameter.update_count, 5);
    ASSERT_FALSE(parameter.arrays.empty());
    EXPECT_EQ(parameter.arrays[0].name, "value");
    EXPECT_EQ(parameter.arrays[0].dtype, info.dtype);
    EXPECT_EQ(parameter.find("main") != nullptr, size_of(info.dtype) == 2);
    for (const StateArray& array : parameter.arrays)
      if (array.name != "value") {
        EXPECT_EQ(array.dtype, main_dtype(info.dtype)) << array.name;
      }
  }
  const auto names = [&](const char* parameter) {
    std::vector<std::string> all;
    for (const StateArray& array : state->parameter(parameter).arrays)
      all.push_back(array.name);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("layer 1/weight"),
            (Names{"value", "main", "exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(names("five"), (Names{"value"}));
  EXPECT_EQ(names("a scalar"), (Names{"value", "momentum_buffer"}));
  EXPECT_EQ(names("amsgrad"),
            (Names{"value", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));

  EXPECT_EQ(state->steps, 5);
  EXPECT_EQ(state->skipped_total, 1);
  EXPECT_EQ(state->skipped_in_a_row, 0);
  EXPECT_EQ(state->scaler.scaler.kind(), Scaler::Kind::dynamic);
  EXPECT_EQ(state->scaler.scaler.scaling().growth_interval, 3);
  // It grows with the third step; the overflow takes one of the hysteresis.
  EXPECT_EQ(state->scaler.scale, 8.0);
  EXPECT_EQ(state->scaler.good_steps, 2);
  EXPECT_EQ(state->scaler.hysteresis_left, 1);
  EXPECT_EQ(state->groups.size(), 4u);
  EXPECT_EQ(state->group("amsgrad").rule, "adamw");
  EXPECT_EQ(state->group("amsgrad").hyperparameters.at("amsgrad"), 1.0);
  EXPECT_EQ(state->group("plain").rule, "sgd");
  EXPECT_EQ(state->group("plain").hyperparameters.at("learning_rate"), 0.125);
}

/// SGD with momentum 0.5 and rate 0.25, in numbers that every type holds.
struct SerialSgd {
  std::vector<double> value, momentum;

  static double start(std::int64_t i) { return double(i % 5) - 2.0; }
  static double gradient(std::int64_t step, std::int64_t i, int rank) {
    return double((i + step) % 3) - 1.0 + 0.5 * rank;
  }

  SerialSgd(std::int64_t size, int ranks, int steps)
      : value(std::size_t(size)), momentum(std::size_t(size), 0.0) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      value[i] = start(std::int64_t(i));
      for (std::int64_t s = 0; s < steps; ++s) {
        double sum = 0.0;
        for (int r = 0; r < ranks; ++r) sum += gradient(s, std::int64_t(i), r);
        momentum[i] = 0.5 * momentum[i] + sum;
        value[i] -= 0.25 * momentum[i];
      }
    }
  }
};

template <class T>
void expect_elements(const ParameterState& parameter, const char* array,
                     const std::vector<double>& expected) {
  const auto got = parameter.elements<T>(array);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double rounded = sizeof(T) == 8
                               ? expected[i]
                               : double(T(static_cast<float>(expected[i])));
    ASSERT_EQ(static_cast<double>(got[i]), rounded)
        << parameter.name << ' ' << array << ' ' << i;
  }
}

TEST(Consolidate, IsTheStateOfASerialModel) {
  const std::map<DType, std::int64_t> sizes = {{DType::float16, 31},
                                               {DType::bfloat16, 300},
                                               {DType::float32, 67},
                                               {DType::float64, 129}};
  constexpr int steps = 3;
  const int ranks = world_size();
  for (const PlanOptions& plan : plans()) {
    ParameterSet model;
    for (const auto& [dtype, size] : sizes)
      model.add(std::string(to_string(dtype)), {size}, typed(dtype));
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = 0.25, .momentum = 0.5};
    options.reduction = Reduction::sum;
    options.plan = plan;
    ShardedOptimizer optimizer(world(), model, options);
    for (std::int64_t p = 0; p < model.size(); ++p)
      write_parameter(optimizer, {p}, SerialSgd::start);
    for (int s = 0; s < steps; ++s) {
      for (std::int64_t p = 0; p < model.size(); ++p)
        fill_gradient(optimizer, {p}, [&](std::int64_t i) {
          return SerialSgd::gradient(s, i, rank_of(optimizer));
        });
      optimizer.step();
    }
    const auto state = optimizer.consolidate(ranks - 1);
    if (!state) continue;
    EXPECT_EQ(state->steps, steps);
    for (const auto& [dtype, size] : sizes) {
      const SerialSgd serial(size, ranks, steps);
      const auto& parameter = state->parameter(to_string(dtype));
      EXPECT_EQ(parameter.update_count, steps);
      visit_dtype(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        using Main = std::conditional_t<sizeof(T) == 8, double, float>;
        expect_elements<T>(parameter, "value", serial.value);
        expect_elements<Main>(parameter, "momentum_buffer", serial.momentum);
        if (sizeof(T) == 2)
          expect_elements<Main>(parameter, "main", serial.value);
      });
    }
  }
}

/// The varied model, three of four parameters in memory of the test's own.
class OwnModel {
 public:
  OwnModel() {
    const ParameterSet model = varied_model();
    for (const ParameterInfo& info : model.parameters()) {
      ParameterOptions options = typed(info.dtype);
      options.group = info.group;
      const std::size_t p = owns_.size();
      if (p % 4 == 3) {
        owns_.emplace_back();
        set_.add(info.name, info.extents, options);
      } else {
        owns_.push_back(Own(info.extents, Order(p % 3), info.dtype));
        owns_.back()->add_to(set_, info.name, options);
      }
    }
  }

  const ParameterSet& set() const { return set_; }

  /// As the function of this name does.
  void train(ShardedOptimizer& optimizer, int steps) const {
    for (int s = 0; s < steps; ++s) {
      const std::int64_t now = optimizer.steps();
      for (std::int64_t p = 0; p < set_.size(); ++p) {
        const auto gradient = [&](std::int64_t i) {
          return rank_of(optimizer) == 0 ? scatter(now, p, i) : 0.0;
        };
        if (const auto& own = owns_[std::size_t(p)])
          own->gradient.fill(gradient);
        else
          fill_gradient(optimizer, {p}, gradient);
      }
      optimizer.step();
    }
  }

  bool gaps_are_whole() const {
    return std::ranges::all_of(
        owns_, [](const auto& own) { return !own || own->gaps_are_whole(); });
  }

 private:
  std::vector<std::optional<Own>> owns_;
  ParameterSet set_;
};

// Memory of the caller's own does not show, whichever way a state goes.
TEST(Consolidate, IsTheSameOfTheCallersMemory) {
  auto buckets = make(world(), plans()[1]);
  train_and_overflow(buckets);
  const auto state = buckets.consolidate(0);
  train(buckets, 2);
  const auto later = buckets.consolidate(0);
  for (const PlanOptions& plan : plans()) {
    const OwnModel model;
    auto own = make(world(), plan, model.set());
    own.load_state(state, 0);
    EXPECT_EQ(own.consolidate(0), state);
    model.train(own, 2);
    EXPECT_EQ(own.consolidate(0), later);
    EXPECT_TRUE(model.gaps_are_whole());

    buckets.load_state(state, 0);
    EXPECT_EQ(buckets.consolidate(0), state);
    buckets.load_state(own.consolidate(0), 0);
    EXPECT_EQ(buckets.consolidate(0), later);
    EXPECT_TRUE(padding_is_zero(buckets));
  }
}

/// Frozen, tied and empty parameters; more ranks than elements.
ParameterSet model_of_kinds() {
  ParameterSet model;
  model.add("embedding", {20, 3}, typed(DType::bfloat16));
  ParameterOptions frozen = typed(DType::bfloat16);
  frozen.frozen = true;
  model.add("fixed/half", {70}, frozen);
  frozen.dtype = DType::float64;
  model.add("fixed/double", {9}, frozen);
  model.add("empty", {0, 3});
  model.add("one", {});
  ParameterOptions head = typed(DType::bfloat16);
  head.tied_to = "embedding";
  model.add("head", {20, 3}, head);
  return model;
}

TEST(Consolidate, HasFrozenTiedAndEmptyParameters) {
  const int root = world_size() - 1;
  for (const PlanOptions& plan : plans()) {
    auto optimizer = make(world(), plan, model_of_kinds());
    write_start(optimizer, 1);
    train(optimizer, 2);
    Snapshot expected = snapshot(optimizer, MPI_COMM_WORLD);
    const auto state = optimizer.consolidate(root);
    auto other = make(world(), plans().back(), model_of_kinds());
    write_start(other, 2);
    train(other, 1);
    other.load_state(state, root);
    EXPECT_TRUE(equal(snapshot(other, MPI_COMM_WORLD), expected));
    EXPECT_TRUE(padding_is_zero(other));
    if (!state) continue;
    std::erase_if(expected, [](const auto& entry) {
      return entry.first.starts_with("head|");
    });
    EXPECT_TRUE(equal(snapshot_of(*state), expected));
    EXPECT_EQ(state->find("head"), nullptr);
    EXPECT_EQ(state->parameter("fixed/half").arrays.size(), 1u);
    EXPECT_EQ(state->parameter("fixed/half").update_count, 0);
    EXPECT_TRUE(state->parameter("empty").elements<float>("exp_avg").empty());
    EXPECT_EQ(state->parameter("one").elements<float>("exp_avg").size(), 1u);
  }
}

TEST(Consolidate, OfNoParameters) {
  ShardedOptimizer optimizer(world(), ParameterSet());
  const auto state = optimizer.consolidate(0);
  if (state) {
    EXPECT_TRUE(state->parameters.empty());
  }
  optimizer.load_state(state, 0);
}

// From any number of ranks to any other, through the highest rank of both: the
// same bits, and the same after more steps.
TEST(Consolidate, GoesOnWithAnyRanksAndBuckets) {
  Snapshot later;
  std::vector<OptimizerState> states;
  std::size_t turn = 0;  // of plans to save from
  for (const int saving : {1, world_size()}) {
    const SubCommunicator savers(saving);
    for (int ranks = 1; ranks <= world_size(); ++ranks) {
      const PlanOptions from = plans()[turn++ % plans().size()];
      const int root = std::min(saving, ranks) - 1;
      std::optional<OptimizerState> state;
      Snapshot saved;
      if (savers.member()) {
        auto optimizer = make(savers.make(), from);
        train_and_overflow(optimizer);
        state = optimizer.consolidate(root);
        saved = snapshot(optimizer, savers.get());
        train(optimizer, 3);
        later = snapshot(optimizer, savers.get());
        ASSERT_FALSE(equal(later, saved));
      }
      broadcast(saved, MPI_COMM_WORLD);
      broadcast(later, MPI_COMM_WORLD);
      const SubCommunicator some(ranks);
      if (!some.member()) continue;
      for (const PlanOptions& plan : plans()) {
        auto other = make(some.make(), plan);
        write_start(other, 2);
        train(other, 1);
        other.group("momentum").set("momentum", 0.5);
        other.load_state(state, root);
        EXPECT_TRUE(equal(snapshot(other, some.get()), saved)) << ranks;
        EXPECT_TRUE(padding_is_zero(other));
        EXPECT_EQ(other.consolidate(root), state);
        train(other, 3);
        EXPECT_TRUE(equal(snapshot(other, some.get()), later)) << ranks;
      }
    }
  }
}

TEST(Consolidate, DoesNotTellRanksAndBuckets) {
  std::optional<OptimizerState> first;
  for (const int ranks : {1, 2, 3, 5}) {
    if (ranks > world_size()) continue;
    const SubCommunicator some(ranks);
    if (!some.member()) continue;
    for (const PlanOptions& plan : plans()) {
      auto optimizer = make(some.make(), plan);
      train_and_overflow(optimizer);
      const auto state = optimizer.consolidate(0);
      if (!state) continue;
      if (!first) first = state;
      EXPECT_EQ(*state, *first) << ranks << ' ' << plan.bucket_bytes;
    }
  }
}

#if KZERO_HAVE_HDF5
/// A model that shares some parameters with the varied one.
ParameterSet similar_model() {
  ParameterSet model;
  model.add("layer 1/weight", {31, 7}, typed(DType::bfloat16));
  ParameterOptions other_group = typed(DType::float64);
  other_group.group = "plain";
  model.add("double", {67}, other_group);
  model.add("five", {6});
  model.add("new", {70}, typed(DType::float16));
  ParameterOptions frozen;
  frozen.frozen = true;
  frozen.group = "amsgrad";
  model.add("amsgrad", {129}, frozen);
  return model;
}

TEST(Consolidate, IsACheckpoint) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  auto optimizer = make(world(), plans()[1]);
  train_and_overflow(optimizer);
  save_checkpoint(optimizer, folder / "c.h5");
  const int root = world_size() - 1;
  const auto state = optimizer.consolidate(root);
  const auto expect_same = [&](const ParameterSet& model,
                               const LoadOptions& options) {
    auto by_file = make(world(), plans()[0], model);
    auto by_state = make(world(), plans()[2], model);
    for (ShardedOptimizer* each : {&by_file, &by_state}) {
      write_start(*each, 2);
      train(*each, 2);
    }
    load_checkpoint(by_file, folder / "c.h5", options);
    by_state.load_state(state, root, options);
    EXPECT_TRUE(equal(snapshot(by_state, MPI_COMM_WORLD),
                      snapshot(by_file, MPI_COMM_WORLD)));
    EXPECT_EQ(by_state.consolidate(root), by_file.consolidate(root));
    train(by_file, 1);
    train(by_state, 1);
    EXPECT_TRUE(equal(snapshot(by_state, MPI_COMM_WORLD),
                      snapshot(by_file, MPI_COMM_WORLD)));
  };
  expect_same(varied_model(), {});
  expect_same(similar_model(), {.match = Match::partial});
}
#endif

}  // namespace
}  // namespace kzero::test
