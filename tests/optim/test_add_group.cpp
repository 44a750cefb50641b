// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Parameters that come while a training runs: they train as in an optimizer of
// their own that was made then, the others as if nothing had happened.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "io/optimizer_snapshot.hpp"
#include "optim/mixed_model.hpp"
#include "optim/overlap_model.hpp"
#include "support/allocation_counter.hpp"
#include "support/grid.hpp"
#include "support/partitions.hpp"
#include "support/whole_partitions.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

const Rule added_rule = AdamW{.learning_rate = 0.03, .weight_decay = 0.2};

// write_parameters would round the main parameters of all others.
MixedModel added(const std::string& prefix) {
  return MixedModel(more_parameters(prefix), Feedback::values, Start::in_views);
}

class AddGroup : public testing::Test {
 protected:
  ShardedOptimizer make(const MixedModel& model, const Partitioning& partition,
                        const Mode& mode = {}) const {
    OptimizerOptions options = mode.in(mixed_options(mixed_rules()));
    partition.set(options.plan);
    ShardedOptimizer optimizer(communicator, model.set(), options);
    model.write_start(optimizer);
    return optimizer;
  }

  /// As a part of the optimizer, with its start written.
  static Part add(ShardedOptimizer& optimizer, const std::string& group,
                  const MixedModel& model, const Rule& rule) {
    const std::int64_t first = optimizer.parameters().size();
    const auto ids = optimizer.add_group(group, model.set(), rule);
    EXPECT_EQ(std::ssize(ids), model.size());
    for (std::int64_t p = 0; p < std::ssize(ids); ++p) {
      EXPECT_EQ(ids[std::size_t(p)].index, first + p);
      EXPECT_EQ(optimizer.parameters()[{first + p}].group, group);
      EXPECT_EQ(optimizer.parameters()[{first + p}].name, model.info(p).name);
      EXPECT_EQ(optimizer.update_count({first + p}), 0);
    }
    model.write_start(optimizer, first);
    return {model, first};
  }

  const std::shared_ptr<Communicator> communicator = world();
};

/// Where everything of the first parameters lies.
std::vector<const void*> addresses(ShardedOptimizer& optimizer,
                                   std::int64_t count) {
  std::vector<const void*> all;
  for (std::int64_t p = 0; p < count; ++p) {
    const ParameterInfo& info = optimizer.parameters()[{p}];
    if (info.external) continue;
    optimizer.visit({p}, [&](const auto& value, const auto& gradient) {
      all.push_back(value.data());
      all.push_back(gradient.data());
    });
  }
  return all;
}

TEST_F(AddGroup, TrainsAsAnOptimizerOfItsOwn) {
  constexpr int added_at = 6;
  constexpr int steps = 10;
  const MixedModel old_model(mixed_parameters());
  SerialModel old_serial(old_model, mixed_rules(), communicator->size());
  for (int step = 0; step < steps; ++step) old_serial.step(step);
  const MixedModel new_model = added("n");
  SerialModel new_serial(new_model, {{"default", added_rule}},
                         communicator->size());
  for (int step = added_at; step < steps; ++step) new_serial.step(step);
  unsigned seed = 0;
  for (const auto& [partition, mode] : all_ways()) {
    SCOPED_TRACE(name_of(Way{partition, mode}));
    const MixedModel model(mixed_parameters());
    const MixedModel more = added("n");
    auto optimizer = make(model, partition, mode);
    std::mt19937 random(++seed * 8 + unsigned(communicator->rank()));
    std::vector<Part> parts = {{model}};
    for (int step = 0; step < steps; ++step) {
      if (step == added_at)
        parts.push_back(add(optimizer, "added", more, added_rule));
      pass(optimizer, parts, step, random);
      EXPECT_TRUE(optimizer.step().updated());
    }
    expect_serial(optimizer, parts[0], old_serial);
    expect_serial(optimizer, parts[1], new_serial);
    EXPECT_TRUE(padding_is_zero(optimizer));
    if (failed_on_any_rank()) return;
  }
}

TEST_F(AddGroup, TouchesNothingOfBefore) {
  for (const Partitioning& partition : all_partitions()) {
    SCOPED_TRACE(name_of(partition));
    const MixedModel model(mixed_parameters());
    auto optimizer = make(model, partition,
                          {Schedule::after_backward, GatherMode::overlapped});
    std::mt19937 random(unsigned(communicator->rank()));
    const Part whole[] = {{model}};
    for (int step = 0; step < 3; ++step) {
      pass(optimizer, whole, step, random);
      optimizer.step();
    }
    const auto order = optimizer.readiness_order();
    const auto micro_batch = [&](std::int64_t p, std::int64_t i) {
      return double(i % 31) / 8.0 - double(p) + 0.5 * communicator->rank();
    };
    for (std::int64_t p = 0; p < model.size(); ++p)
      if (!model.info(p).frozen && model.is_name_of(p, p))
        model.fill_gradient(optimizer, 0, p,
                            [&](auto i) { return micro_batch(p, i); });
    optimizer.wait_parameters();
    const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
    const auto where = addresses(optimizer, model.size());
    std::vector<Range> places;
    for (std::int64_t p = 0; p < model.size(); ++p)
      places.push_back(optimizer.plan().placement({p}).in_buffer);

    const MixedModel more = added("n");
    add(optimizer, "added", more, added_rule);

    EXPECT_EQ(addresses(optimizer, model.size()), where);
    EXPECT_EQ(optimizer.readiness_order(), order);
    const Snapshot after = snapshot(optimizer, MPI_COMM_WORLD);
    for (const auto& [name, value] : before) {
      EXPECT_TRUE(after.at(name) == value) << name;
    }
    for (std::int64_t p = 0; p < model.size(); ++p) {
      EXPECT_EQ(optimizer.plan().placement({p}).in_buffer,
                places[std::size_t(p)]);
      if (model.info(p).frozen || model.info(p).external) continue;
      const std::int64_t storage = model.info(p).storage.index;
      visit_dtype(model.info(p).gradient_dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const auto view = optimizer.gradient<T*>({p});
        for (std::int64_t i = 0; i < model.info(p).size; ++i)
          ASSERT_EQ(
              static_cast<double>(view(i)),
              rounded_to(model.info(p).gradient_dtype, micro_batch(storage, i)))
              << model.info(p).name;
      });
    }
    EXPECT_TRUE(model.gaps_are_whole());
  }
}

// One after another, two in one step, one of them empty; then all in one order.
TEST_F(AddGroup, GoesOnAfterSeveralAndARebuild) {
  constexpr int steps = 8;
  const Rules rules = {{"one", Lion{.learning_rate = 0.01}},
                       {"two", Sgd{.learning_rate = 0.05, .momentum = 0.5}},
                       {"three", added_rule}};
  const std::map<std::string, int> added_at = {
      {"one", 0}, {"two", 3}, {"three", 3}};
  std::vector<MixedModel> models;
  models.emplace_back(mixed_parameters());
  std::vector<SerialModel> serials;
  for (const auto& [name, rule] : rules) models.push_back(added(name));
  serials.emplace_back(models[0], mixed_rules(), communicator->size());
  for (int step = 0; step < steps; ++step) serials[0].step(step);
  std::size_t k = 1;
  for (const auto& [name, rule] : rules) {
    serials.emplace_back(models[k++], Rules{{"default", rule}},
                         communicator->size());
    for (int step = added_at.at(name); step < steps; ++step)
      serials.back().step(step);
  }
  unsigned seed = 0;
  for (const auto& [partition, mode] : all_ways()) {
    SCOPED_TRACE(name_of(Way{partition, mode}));
    std::vector<MixedModel> mine;
    mine.emplace_back(mixed_parameters());
    for (const auto& [name, rule] : rules) mine.push_back(added(name));
    auto optimizer = make(mine[0], partition, mode);
    std::mt19937 random(++seed * 8 + unsigned(communicator->rank()));
    std::vector<Part> parts = {{mine[0]}};
    std::vector<std::size_t> which = {0};
    for (int step = 0; step < steps; ++step) {
      std::size_t next = 1;
      for (const auto& [name, rule] : rules) {
        if (added_at.at(name) == step) {
          parts.push_back(add(optimizer, name, mine[next], rule));
          which.push_back(next);
        }
        ++next;
      }
      if (step == 3) {
        EXPECT_TRUE(
            optimizer.add_group("empty", ParameterSet(), Lion{}).empty());
      }
      pass(optimizer, parts, step, random);
      EXPECT_TRUE(optimizer.step().updated());
      // Before the last two came, with them, and again.
      if (step % 2 == 1) optimizer.rebuild_buckets();
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      expect_serial(optimizer, parts[i], serials[which[i]]);
    EXPECT_TRUE(padding_is_zero(optimizer));
    if (failed_on_any_rank()) return;
  }
}

TEST_F(AddGroup, HasRatesOfItsOwn) {
  const MixedModel model(mixed_parameters());
  const MixedModel more = added("n");
  auto optimizer = make(model, {});
  SerialModel old_serial(model, mixed_rules(), communicator->size());
  SerialModel new_serial(more, {{"default", added_rule}}, communicator->size());
  Group old_group = optimizer.group("momentum");
  old_group.set("learning_rate", 0.25);
  old_serial.set_rule(
      "momentum",
      Sgd{.learning_rate = 0.25, .momentum = 0.9, .weight_decay = 0.01});
  const Part part = add(optimizer, "added", more, added_rule);
  EXPECT_EQ(optimizer.group("added").get("learning_rate"), 0.03);
  EXPECT_EQ(optimizer.group("added").rule(), "adamw");
  EXPECT_EQ(old_group.get("learning_rate"), 0.25);
  EXPECT_EQ(old_group.name(), "momentum");
  std::mt19937 random(unsigned(communicator->rank()));
  const Part parts[] = {{model}, part};
  const auto step = [&](int number) {
    pass(optimizer, parts, number, random);
    optimizer.step();
    old_serial.step(number);
    new_serial.step(number);
  };
  step(0);
  optimizer.group("added").set("learning_rate", 0.5);
  new_serial.set_rule("default",
                      AdamW{.learning_rate = 0.5, .weight_decay = 0.2});
  step(1);
  old_group.set("learning_rate", 0.125);
  old_serial.set_rule(
      "momentum",
      Sgd{.learning_rate = 0.125, .momentum = 0.9, .weight_decay = 0.01});
  step(2);
  expect_serial(optimizer, parts[0], old_serial);
  expect_serial(optimizer, parts[1], new_serial);
}

// Values that are there when the group comes are where an external one starts.
TEST_F(AddGroup, StartsWithZerosOrTheCallersValues) {
  const MixedModel model(mixed_parameters());
  auto optimizer = make(model, {});
  const MixedModel more = added("n");
  const std::int64_t first = optimizer.parameters().size();
  optimizer.add_group("added", more.set(), added_rule);
  for (std::int64_t p = 0; p < more.size(); ++p)
    for (std::int64_t i = 0;
         const double value : more.values(optimizer, first, p))
      EXPECT_EQ(value, more.info(p).external ? more.start(p, i++) : 0.0);
  const auto state = optimizer.consolidate(0);
  if (state) {
    EXPECT_EQ(state->parameter("n2").elements<float>("main")[5],
              float(more.start(2, 5)));
  }
}

// Matrices, and what is none beside them: as in an optimizer of their own.
TEST_F(AddGroup, TakesRulesForMatrices) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {24, 24}, {37}, {31, 7}, {7, 31}, {0, 5}};
  for (const Partition partition : whole_partitions(communicator->size())) {
    ParameterSet set;
    for (std::size_t p = 0; p < shapes.size(); ++p)
      set.add(detail::concat("m", p), shapes[p]);
    const MixedModel model(mixed_parameters());
    auto optimizer = make(model, {partition});
    const std::int64_t first = optimizer.parameters().size();
    optimizer.step();
    optimizer.add_group("muon", set, Muon{.learning_rate = 0.1});
    EXPECT_EQ(optimizer.group("muon").rule(), "muon");
    EXPECT_EQ(optimizer.group("muon/beside").rule(), "adamw");
    OptimizerOptions options;
    options.rule = Muon{.learning_rate = 0.1};
    options.plan.partition = partition;
    ShardedOptimizer apart(communicator, set, options);
    optimizer.group("muon/beside").set("learning_rate", 0.01);
    apart.group("default/beside").set("learning_rate", 0.01);
    const auto fill = [&](ShardedOptimizer& of, std::int64_t from, int step) {
      for (std::int64_t p = 0; p < set.size(); ++p)
        fill_gradient(of, {from + p}, [&](auto i) {
          return double((i * 13 + 31 * step + p + communicator->rank()) % 97) -
                 48.0;
        });
    };
    for (int step = 0; step < 4; ++step) {
      fill(optimizer, first, step);
      fill(apart, 0, step);
      optimizer.step();
      apart.step();
      if (step == 1) {
        fill(optimizer, first, 7);
        fill(apart, 0, 7);
        for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
          if (!optimizer.parameters()[{p}].frozen) optimizer.mark_ready({p});
        for (std::int64_t p = 0; p < set.size(); ++p) apart.mark_ready({p});
        optimizer.step();
        apart.step();
        optimizer.rebuild_buckets();
      }
    }
    for (std::int64_t p = 0; p < set.size(); ++p)
      EXPECT_EQ(read_parameter(optimizer, {first + p}),
                read_parameter(apart, {p}));
    // Owners are others: for the largest matrix of all.
    std::int64_t work[] = {optimizer.memory().work, apart.memory().work};
    communicator->all_reduce(work, Extremum::maximum, {"test"});
    EXPECT_GT(work[0], 0);
    EXPECT_EQ(work[0], work[1]);
  }
}

TEST_F(AddGroup, OfNoParametersIsAGroup) {
  const MixedModel model(mixed_parameters());
  auto optimizer = make(model, {});
  EXPECT_TRUE(optimizer.add_group("empty", ParameterSet(), Lion{}).empty());
  EXPECT_EQ(optimizer.group("empty").rule(), "lion");
  EXPECT_EQ(optimizer.parameters().size(), model.size());
  EXPECT_THROW(optimizer.add_group("empty", ParameterSet(), Lion{}),
               InvalidArgument);
  SerialModel serial(model, mixed_rules(), communicator->size());
  std::mt19937 random(unsigned(communicator->rank()));
  const Part whole[] = {{model}};
  for (int step = 0; step < 3; ++step) {
    pass(optimizer, whole, step, random);
    optimizer.step();
    serial.step(step);
  }
  expect_serial(optimizer, whole[0], serial);
}

TEST_F(AddGroup, TakesThePlannedMemory) {
  const std::map<std::string, std::size_t> arrays = {
      {"default", 2}, {"momentum", 1}, {"sign", 1}, {"added", 2}};
  for (const auto& [partition, mode] : all_ways()) {
    const MixedModel model(mixed_parameters());
    const MixedModel more = added("n");
    // A communicator of its own: it keeps what it has grown to.
    OptimizerOptions options = mode.in(mixed_options(mixed_rules()));
    partition.set(options.plan);
    ShardedOptimizer optimizer(world(Backend::mpi), model.set(), options);
    add(optimizer, "added", more, added_rule);
    optimizer.step();
    const Plan& plan = optimizer.plan();
    std::vector<std::size_t> of_buffers;
    for (const Buffer& buffer : plan.buffers()) {
      std::size_t most = 0;
      for (const ParameterId id : buffer.parameters)
        most = std::max(most, arrays.at(optimizer.parameters()[id].group));
      of_buffers.push_back(most);
    }
    const Memory got = optimizer.memory();
    const Memory expected = plan.memory(communicator->rank(), of_buffers);
    EXPECT_EQ(got.parameters, expected.parameters);
    EXPECT_EQ(got.gradients, expected.gradients);
    EXPECT_EQ(got.averaged, expected.averaged);
    EXPECT_EQ(got.main, expected.main);
    EXPECT_EQ(got.moments, expected.moments);
    EXPECT_EQ(got.staging, expected.staging);
  }
}

/// Asks for what it cannot get where a matrix is tall.
struct Greedy {
  static constexpr std::string_view name = "greedy";
  static constexpr std::array<std::string_view, 0> state = {};
  double learning_rate = 1e-3;
  static constexpr Hyperparameter<Greedy> hyperparameters[] = {
      {"learning_rate", &Greedy::learning_rate}};
  static std::int64_t work_elements(std::int64_t rows, std::int64_t) {
    return rows > 50 ? -1 : 0;
  }
  template <class T>
  void operator()(const MatrixUpdate<T>&) const {}
};

/// Wrong calls, each of which leaves an optimizer as it was.
class WrongGroups : public AddGroup {
 protected:
  void expect_all_refused(ShardedOptimizer& optimizer, const WrongCalls& rows) {
    const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
    const std::string description = optimizer.describe();
    const std::int64_t size = optimizer.parameters().size();
    expect_refused(rows, [&] {
      EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
      EXPECT_EQ(optimizer.describe(), description);
      EXPECT_EQ(optimizer.parameters().size(), size);
      EXPECT_THROW(optimizer.group("g"), InvalidArgument);
    });
  }

  static ParameterSet one(const std::string& name, std::int64_t size = 5,
                          ParameterOptions options = {}) {
    ParameterSet set;
    set.add(name, {size}, std::move(options));
    return set;
  }

  WrongCall row(ShardedOptimizer& optimizer, const char* what,
                const std::string& group, const ParameterSet& set,
                const Rule& rule, std::vector<std::string> says) const {
    return {what, [=, &optimizer] { optimizer.add_group(group, set, rule); },
            std::move(says), Found::collective};
  }
};

TEST_F(WrongGroups, OfAnyOptimizer) {
  for (const Partitioning& partition : all_partitions())
    for (const Schedule schedule : {Schedule::at_step, Schedule::interleaved}) {
      const MixedModel model(mixed_parameters());
      auto optimizer = make(model, partition, {.schedule = schedule});
      std::mt19937 random(unsigned(communicator->rank()));
      const Part whole[] = {{model}};
      pass(optimizer, whole, 0, random);
      optimizer.step();
      const int rank = communicator->rank();
      const bool last = rank == communicator->size() - 1;
      ParameterSet two = one("new");
      two.add("p7", {4});
      WrongCalls rows = {
          row(optimizer, "a name that is there", "g", two, Lion{}, {"\"p7\""}),
          row(optimizer, "a group that is there", "momentum", one("new"),
              Lion{}, {"add_group", "\"momentum\""}),
          row(optimizer, "no name", "", one("new"), Lion{},
              {"add_group", "no name"}),
          row(optimizer, "another group", "g",
              one("new", 5, {.group = "elsewhere"}), Lion{},
              {"\"new\"", "\"elsewhere\"", "\"g\""}),
          row(optimizer, "tied to one of another group", "g",
              one("new", 300, {.tied_to = "p0"}), Lion{}, {"\"p0\""})};
      if (communicator->size() > 1) {
        rows.push_back(row(optimizer, "other extents", "g",
                           one("new", last ? 6 : 5), Lion{}, {"5", "6"}));
        rows.push_back(row(optimizer, "other names", "g",
                           one(last ? "new" : "old"), Lion{},
                           {"\"new\"", "\"old\""}));
        rows.push_back(row(optimizer, "other hyperparameters", "g", one("new"),
                           Lion{.learning_rate = last ? 0.5 : 0.25},
                           {"0.5", "0.25"}));
        rows.push_back(row(optimizer, "other rules", "g", one("new"),
                           last ? Rule(Lion{}) : Rule(Sgd{}), {"lion", "sgd"}));
        rows.push_back(row(optimizer, "another number", "g",
                           last ? ParameterSet() : one("new"), Lion{},
                           {"number of parameters"}));
        rows.push_back(row(optimizer, "other groups", last ? "g" : "h",
                           one("new"), Lion{}, {"\"g\"", "\"h\""}));
        rows.push_back(row(optimizer, "wrong on one rank", last ? "" : "g",
                           one("new"), Lion{}, {"add_group", "no name"}));
        if (partition.partition == Partition::elements)
          rows.push_back(row(optimizer, "a rule for matrices", "g", one("new"),
                             Muon{}, {"muon", "elements"}));
      }
      // Its owner alone would make room for it.
      ParameterSet tall;
      tall.add("tall", {51, 2});
      if (partition.partition != Partition::elements)
        rows.push_back(row(optimizer, "no room for a matrix", "g", tall,
                           Greedy{}, {"greedy", "\"tall\"", "work memory"}));
      if (schedule == Schedule::interleaved)
        rows.push_back(row(optimizer, "a trust ratio", "g", one("new"), Lamb{},
                           {"lamb", "interleaved"}));
      expect_all_refused(optimizer, rows);
      // Then it takes a good one.
      optimizer.add_group("g", one("new"), Lion{});
      optimizer.step();
      if (failed_on_any_rank()) return;
    }
}

TEST_F(WrongGroups, BetweenAMarkAndAStep) {
  const MixedModel model(mixed_parameters());
  auto optimizer = make(model, {});
  const bool last = communicator->rank() == communicator->size() - 1;
  if (last) optimizer.mark_ready({3});
  expect_all_refused(
      optimizer, {row(optimizer, "between a mark and a step", "g", one("new"),
                      Lion{}, {"\"p3\"", "call that first"})});
  optimizer.step();
  optimizer.add_group("g", one("new"), Lion{});
}

TEST_F(WrongGroups, WithoutMemory) {
  const MixedModel model(mixed_parameters());
  auto optimizer = make(model, {});
  const bool last = communicator->rank() == communicator->size() - 1;
  constexpr std::int64_t size = 12'288 * 12;  // a multiple of 64 P
  WrongCall refused = row(optimizer, "no memory", "g", one("new", size), Lion{},
                          {std::to_string(4 * size)});
  const auto call = refused.call;
  refused.call = [&] {
    refused_bytes = last ? std::size_t(4 * size) : 0;
    try {
      call();
    } catch (...) {
      refused_bytes = 0;
      throw;
    }
    refused_bytes = 0;
  };
  expect_all_refused(optimizer, {refused});
  optimizer.add_group("g", one("new", size), Lion{});
  optimizer.step();
}

// Ranks of one model: some of them have nothing to add.
TEST(AddGroupInAModel, IsThatOfTheWholeModel) {
  const int ranks = world()->size();
  if (ranks % 2 != 0) return;
  const Grid grid(2);
  const bool first = grid.model->rank() == 0;
  ParameterSet set;
  set.add(first ? "first" : "second", {100});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  options.model_parallel = grid.model;
  ShardedOptimizer optimizer(grid.data, set, options);
  ParameterSet more;
  if (first) more.add("more", {70}, {.unmarked = Unmarked::keep});
  optimizer.add_group("added", more, Sgd{.learning_rate = 0.5});
  EXPECT_EQ(optimizer.parameters().size(), first ? 2 : 1);
  for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
    fill_gradient(optimizer, {p}, [](auto) { return 2.0; });
  const StepReport report = optimizer.step();
  EXPECT_NEAR(report.gradient_norm(), 2.0 * std::sqrt(270.0), 1e-12);
  EXPECT_EQ(read_parameter(optimizer, {0}), std::vector<double>(100, -2.0));
  if (first) {
    EXPECT_EQ(read_parameter(optimizer, {1}), std::vector<double>(70, -1.0));
  }
  // What one rank finds wrong is wrong for the model.
  ParameterSet clash;
  if (first) clash.add("first", {3});
  const auto message = message_of<InvalidArgument>(
      [&] { optimizer.add_group("wrong", clash, Sgd{}); });
  EXPECT_NE(message.find("\"first\""), std::string::npos) << message;
  optimizer.step();
}

}  // namespace
}  // namespace kzero::test
