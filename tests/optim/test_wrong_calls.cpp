// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Wrong calls of an optimizer: each is refused on every rank, by name and
// value, and does no harm. The folder wrong_calls has those that come before
// there is an optimizer.
#include <gtest/gtest.h>

#include <kzero/kzero.hpp>
#include <limits>
#include <stdexcept>

#include "core/message.hpp"
#include "support/optimizer_support.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

using detail::concat;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// An optimizer of plain steps of 1, and whether it still makes them.
class WrongUse : public testing::Test {
 protected:
  static ParameterSet model() {
    ParameterSet set;
    set.add("w", {3, 4});
    set.add("half", {5}, typed(DType::bfloat16));
    set.add("fixed", {2}, {.frozen = true});
    return set;
  }

  static OptimizerOptions plain() {
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = 1.0};
    return options;
  }

  void fill_gradients() {
    fill_gradient(optimizer, w, [](auto) { return 1.0; });
    fill_gradient(optimizer, half, [](auto) { return 1.0; });
  }

  /// A step of gradients of 1 on every rank moves "w" by 1.
  void expect_steps() {
    fill_gradients();
    const std::vector<double> before = read_parameter(optimizer, w);
    const StepReport report = optimizer.step();
    EXPECT_TRUE(report.updated());
    const std::vector<double> after = read_parameter(optimizer, w);
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(after[i], before[i] - 1.0);
    EXPECT_EQ(optimizer.steps(), ++steps_);
    EXPECT_EQ(optimizer.group("default").get("learning_rate"), 1.0);
  }

  void expect_refused_unharmed(const WrongCalls& rows) {
    expect_refused(rows, [this] { expect_steps(); });
  }

  std::shared_ptr<Communicator> communicator = world();
  const int rank = communicator->rank();
  const int ranks = communicator->size();
  const bool is_last = rank == ranks - 1;
  ShardedOptimizer optimizer{communicator, model(), plain()};
  const ParameterId w{0}, half{1}, fixed{2}, none{}, foreign{9};

 private:
  std::int64_t steps_ = 0;
};

TEST_F(WrongUse, OfViews) {
  const ParameterId highest{std::numeric_limits<std::int64_t>::max()};
  expect_refused_unharmed({
      {"a parameter of another type",
       [&] { optimizer.parameter<double**>(w); },
       {"\"w\"", "float32", "float64"}},
      {"a parameter of another 16-bit type",
       [&] { optimizer.parameter<float16*>(half); },
       {"\"half\"", "bfloat16", "float16"}},
      {"too many extents",
       [&] { optimizer.parameter<float***>(w); },
       {"\"w\"", "2 extents", "3"}},
      {"too few extents",
       [&] { optimizer.parameter<float>(w); },
       {"\"w\"", "2 extents", "0"}},
      {"another static extent",
       [&] { optimizer.parameter<float* [5]>(w); },
       {"\"w\"", "has 4", "dimension 1", "says 5"}},
      {"another static number of elements",
       [&] { optimizer.parameter<float[13]>(w); },
       {"\"w\"", "has 12", "says 13"}},
      {"a parameter of no id",
       [&] { optimizer.parameter<float*>(none); },
       {"parameter", "got -1"}},
      {"a parameter of a foreign id",
       [&] { optimizer.parameter<float*>(foreign); },
       {"below 3", "got 9"}},
      {"a parameter of the highest id",
       [&] { optimizer.parameter<float*>(highest); },
       {"below 3", "got 9223372036854775807"}},
      {"a gradient of another type",
       [&] { optimizer.gradient<bfloat16*>(half); },
       {"gradient", "\"half\"", "float32", "bfloat16"}},
      {"a gradient of other extents",
       [&] { optimizer.gradient<float****>(w); },
       {"\"w\"", "2 extents", "4"}},
      {"a gradient of a frozen parameter",
       [&] { optimizer.gradient<float*>(fixed); },
       {"\"fixed\"", "frozen"}},
      {"a gradient of a foreign id",
       [&] { optimizer.gradient<float*>(foreign); },
       {"below 3", "got 9"}},
      {"a visit of a foreign id",
       [&] { optimizer.visit(foreign, [](auto, auto) {}); },
       {"below 3", "got 9"}},
      {"a visit of no id",
       [&] { optimizer.visit(none, [](auto, auto) {}); },
       {"below 3", "got -1"}},
      {"a count of a foreign id",
       [&] { static_cast<void>(optimizer.update_count(foreign)); },
       {"below 3", "got 9"}},
      {"segments of a foreign id",
       [&] { static_cast<void>(optimizer.segments(foreign)); },
       {"below 3", "got 9"}},
      {"a placement of a foreign id",
       [&] { static_cast<void>(optimizer.plan().placement(foreign)); },
       {"below 3", "got 9"}},
      {"an info of a foreign id",
       [&] { static_cast<void>(optimizer.parameters()[foreign]); },
       {"below 3", "got 9"}},
  });
}

TEST_F(WrongUse, OfAveragedGradient) {
  const auto averaged = [this](ParameterId id) {
    optimizer.averaged_gradient<float>(id);
  };
  expect_refused({{"before the first step",
                   [&] { averaged(w); },
                   {"averaged gradient", "\"w\"", "after a step()"}}});
  expect_steps();
  expect_refused_unharmed({
      {"of another type",
       [&] { optimizer.averaged_gradient<double>(w); },
       {"averaged gradient", "\"w\"", "float32", "float64"}},
      {"of a 16-bit parameter in its own type",
       [&] { optimizer.averaged_gradient<bfloat16>(half); },
       {"averaged gradient", "\"half\"", "float32", "bfloat16"}},
      {"of a frozen parameter",
       [&] { averaged(fixed); },
       {"\"fixed\"", "frozen"}},
      {"of a foreign id", [&] { averaged(foreign); }, {"below 3", "got 9"}},
      {"after zero_gradients",
       [&] {
         optimizer.zero_gradients();
         averaged(w);
       },
       {"averaged gradient", "\"w\"", "zeroed"}},
      {"after a mark",
       [&] {
         optimizer.mark_ready(w);
         averaged(half);
       },
       {"averaged gradient", "\"half\"", "marked"}},
  });
  OptimizerOptions skipping = plain();
  skipping.nonfinite = Nonfinite::skip;
  ShardedOptimizer other(communicator, model(), skipping);
  fill_gradient(other, w, [](auto) { return nan; });
  EXPECT_FALSE(other.step().updated());
  expect_refused({{"after a skipped step",
                   [&] { other.averaged_gradient<float>(w); },
                   {"averaged gradient", "\"w\"", "that updated"}}});
}

// Each leaves "w" marked.
TEST_F(WrongUse, OfMarks) {
  const auto after_mark = [this](std::function<void()> call) {
    return [=, this] {
      optimizer.mark_ready(w);
      call();
    };
  };
  const std::string marked = "1 of 2 parameters are marked, the first is \"w\"";
  expect_refused_unharmed({
      {"a mark of a foreign id",
       [&] { optimizer.mark_ready(foreign); },
       {"below 3", "got 9"}},
      {"a mark of no id",
       [&] { optimizer.mark_ready(none); },
       {"below 3", "got -1"}},
      {"a mark of a frozen parameter",
       [&] { optimizer.mark_ready(fixed); },
       {"\"fixed\"", "frozen"}},
      {"a second mark",
       after_mark([&] { optimizer.mark_ready(w); }),
       {"\"w\"", "twice"}},
      {"zero_gradients after a mark",
       after_mark([&] { optimizer.zero_gradients(); }),
       {"zero_gradients", marked}},
      {"reload_main_from_parameters after a mark",
       after_mark([&] { optimizer.reload_main_from_parameters(); }),
       {"reload_main_from_parameters", marked}},
      {"Group::set after a mark",
       after_mark(
           [&] { optimizer.group("default").set("learning_rate", 0.5); }),
       {"Group::set", marked}},
      {"write_parameters after a mark",
       after_mark(
           [&] { optimizer.write_parameters(0, [](ParameterWriter&) {}); }),
       {"write_parameters", marked},
       Found::collective},
      {"broadcast_parameters after a mark",
       after_mark([&] { optimizer.broadcast_parameters(); }),
       {"broadcast_parameters", marked},
       Found::collective},
      {"broadcast_parameters after a mark on the last rank",
       [&] {
         if (is_last) optimizer.mark_ready(w);
         optimizer.broadcast_parameters();
       },
       {"broadcast_parameters", marked},
       Found::collective},
  });
}

TEST_F(WrongUse, OfWritingParameters) {
  const auto write = [this](int root) {
    optimizer.write_parameters(
        root, [](ParameterWriter&) { ADD_FAILURE() << "called"; });
  };
  WrongCalls rows = {
      {"root of -1",
       [&] { write(-1); },
       {"write_parameters", "root is -1", concat("0 to ", ranks - 1)},
       Found::collective},
      {"root past the end",
       [&] { write(ranks); },
       {"write_parameters", concat("root is ", ranks)},
       Found::collective},
      {"broadcast from -1",
       [&] { optimizer.broadcast_parameters(-1); },
       {"broadcast_parameters", "root is -1"},
       Found::collective},
      {"broadcast from a rank past the end",
       [&] { optimizer.broadcast_parameters(ranks); },
       {"broadcast_parameters", concat("root is ", ranks)},
       Found::collective},
      {"root past the end on the last rank",
       [&] { optimizer.broadcast_parameters(is_last ? ranks : 0); },
       {"broadcast_parameters", concat("root is ", ranks)},
       Found::collective},
      {"a function that throws",
       [&] {
         optimizer.write_parameters(0, [](ParameterWriter&) {
           throw std::runtime_error("no such file: start.bin");
         });
       },
       {"write_parameters", "no such file: start.bin"},
       Found::collective},
      {"a function that throws a number",
       [&] {
         optimizer.write_parameters(0, [](ParameterWriter&) { throw 7; });
       },
       {"write_parameters", "the function threw"},
       Found::collective},
      {"an empty function",
       [&] {
         optimizer.write_parameters(0, std::function<void(ParameterWriter&)>());
       },
       {"write_parameters", "the function threw", "bad_function_call"},
       Found::collective},
      {"a view of another type in the function",
       [&] {
         optimizer.write_parameters(ranks - 1, [&](ParameterWriter& writer) {
           writer.parameter<double*>(w);
         });
       },
       {"write_parameters", "\"w\"", "float32", "float64"},
       Found::collective},
      {"a foreign id in the function",
       [&] {
         optimizer.write_parameters(0, [&](ParameterWriter& writer) {
           writer.visit(foreign, [](auto) {});
         });
       },
       {"write_parameters", "below 3", "got 9"},
       Found::collective},
  };
  if (ranks > 1) {
    const std::string last = concat("rank ", ranks - 1, " has root = ");
    rows.push_back({"roots that differ",
                    [&] { write(is_last ? 1 : 0); },
                    {"write_parameters", "rank 0 has root = 0", last + "1"},
                    Found::collective});
    rows.push_back({"roots that differ, of a broadcast",
                    [&] { optimizer.broadcast_parameters(is_last ? 0 : 1); },
                    {"broadcast_parameters", "rank 0 has root = 1", last + "0"},
                    Found::collective});
  }
  expect_refused_unharmed(rows);
}

TEST_F(WrongUse, OfGroups) {
  const auto set = [this](const char* name, double value) {
    return [=, this] { optimizer.group("default").set(name, value); };
  };
  expect_refused_unharmed({
      {"an unknown group",
       [&] { optimizer.group("decoder"); },
       {"group \"decoder\"", "\"default\""}},
      {"a group of no name",
       [&] { optimizer.group(""); },
       {"group \"\"", "\"default\""}},
      {"an unknown hyperparameter is read",
       [&] { static_cast<void>(optimizer.group("default").get("beta1")); },
       {"sgd", "\"beta1\""}},
      {"an unknown hyperparameter is set",
       set("beta1", 0.9),
       {"sgd", "\"beta1\"", "momentum"}},
      {"a negative learning rate",
       set("learning_rate", -1.0),
       {"sgd", "learning_rate", "-1"}},
      {"a learning rate of NaN",
       set("learning_rate", nan),
       {"sgd", "learning_rate", "nan"}},
      {"a change that needs other state",
       set("momentum", 0.9),
       {"sgd", "momentum", "from 0 to 0.9"}},
  });
}

TEST_F(WrongUse, OfHyperparametersThatDiffer) {
  if (ranks == 1) GTEST_SKIP() << "for more than one rank";
  WrongCalls rows;
  for (const int other : {0, 1, ranks - 1})
    rows.push_back({concat("another learning rate on rank ", other),
                    [=, this] {
                      fill_gradients();
                      const auto before = read_all(optimizer);
                      Group group = optimizer.group("default");
                      if (rank == other) group.set("learning_rate", 0.25);
                      const Outcome outcome =
                          outcome_of([&] { optimizer.step(); });
                      EXPECT_EQ(read_all(optimizer), before);
                      group.set("learning_rate", 1.0);
                      if (outcome.thrown == Throws::invalid_argument)
                        throw InvalidArgument(outcome.message);
                    },
                    {concat("rank 0 has learning_rate of group \"default\" = ",
                            other == 0 ? "0.25" : "1"),
                     concat("rank ", other == 0 ? 1 : other,
                            " has learning_rate of group \"default\" = ",
                            other == 0 ? "1" : "0.25"),
                     "nothing was changed"},
                    Found::collective});
  expect_refused_unharmed(rows);
}

TEST_F(WrongUse, OfGradientsThatStayNonfinite) {
  OptimizerOptions options = plain();
  options.nonfinite = Nonfinite::throw_after(2);
  ShardedOptimizer other(communicator, model(), options);
  const auto spoilt_step = [&] {
    if (is_last)
      fill_gradient(other, half, [](auto i) { return i == 3 ? nan : 1.0; });
    return other.step();
  };
  EXPECT_FALSE(spoilt_step().updated());
  expect_refused({{"the second step in a row",
                   spoilt_step,
                   {"2 steps", concat("rank ", ranks - 1), "\"half\""},
                   Found::collective,
                   Throws::nonfinite_error}});
  EXPECT_EQ(read_all(other), std::vector<double>(12 + 5 + 2, 0.0));
  other.zero_gradients();
  EXPECT_TRUE(other.step().updated());
}

TEST_F(WrongUse, AfterAMove) {
  ShardedOptimizer moved = std::move(optimizer);
  ShardedOptimizer& empty = optimizer;
  const std::vector<std::string> says = {"moved from"};
  expect_refused({
      {"step", [&] { empty.step(); }, says},
      {"step with a loss", [&] { empty.step([] { return 1.0; }); }, says},
      {"parameter", [&] { empty.parameter<float*>(w); }, says},
      {"gradient", [&] { empty.gradient<float*>(w); }, says},
      {"averaged_gradient", [&] { empty.averaged_gradient<float>(w); }, says},
      {"visit", [&] { empty.visit(w, [](auto, auto) {}); }, says},
      {"mark_ready", [&] { empty.mark_ready(w); }, says},
      {"zero_gradients", [&] { empty.zero_gradients(); }, says},
      {"write_parameters",
       [&] { empty.write_parameters(0, [](ParameterWriter&) {}); }, says},
      {"broadcast_parameters", [&] { empty.broadcast_parameters(); }, says},
      {"reload_main", [&] { empty.reload_main_from_parameters(); }, says},
      {"loss_scale", [&] { static_cast<void>(empty.loss_scale()); }, says},
      {"group", [&] { empty.group("default"); }, says},
      {"steps", [&] { static_cast<void>(empty.steps()); }, says},
      {"parameters", [&] { static_cast<void>(empty.parameters()); }, says},
      {"describe", [&] { static_cast<void>(empty.describe()); }, says},
      {"memory", [&] { static_cast<void>(empty.memory()); }, says},
  });
  optimizer = std::move(moved);
  expect_steps();
}

// Ranks that call different things: the first that waits in vain says so.
TEST_F(WrongUse, OfRanksThatPart) {
  if (ranks == 1) GTEST_SKIP() << "for more than one rank";
  for (const Backend backend : {Backend::mpi, Backend::node}) {
    const auto brief = make_communicator(
        MPI_COMM_WORLD,
        {.backend = backend, .timeout = std::chrono::seconds(4)});
    ShardedOptimizer other(brief, model(), plain());
    // On a node the others learn at once that one has given up.
    expect_refused({{"the last rank broadcasts, the others step",
                     [&] {
                       if (is_last)
                         other.broadcast_parameters();
                       else
                         other.step();
                     },
                     {"rank", backend == Backend::mpi ? "4.0 s" : "on rank"},
                     Found::local,
                     Throws::communication_error}});
    expect_refused({{"a step after that",
                     [&] { other.step(); },
                     {"refused", "unusable"},
                     Found::local,
                     Throws::communication_error}});
  }
}

}  // namespace
}  // namespace kzero::test
