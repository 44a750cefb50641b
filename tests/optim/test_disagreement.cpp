// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Ranks that disagree when an optimizer is made: every rank throws the same
// error, which says what differs and who has what.
#include <gtest/gtest.h>

#include <cmath>
#include <kzero/kzero.hpp>
#include <utility>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "support/optimizer_support.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

using detail::concat;

struct Given {
  ParameterSet parameters;
  OptimizerOptions options;
};

/// What one rank does otherwise, and both values as the message has them.
struct Difference {
  const char* what;
  std::function<void(Given&, bool other)> give;
  std::string one;
  std::string other;
};

/// Options that are the same on all ranks but for one.
Difference option(const char* what,
                  std::function<void(OptimizerOptions&)> change,
                  std::string one, std::string other) {
  return {what,
          [=](Given& given, bool is_other) {
            given.parameters.add("w", {4});
            given.parameters.add("v", {2});
            if (is_other) change(given.options);
          },
          std::move(one), std::move(other)};
}

/// A parameter that all ranks declare alike but for one.
Difference declaration(const char* what, ParameterOptions options,
                       std::string one, std::string other) {
  return {what,
          [=](Given& given, bool is_other) {
            given.parameters.add("w", {4});
            given.parameters.add("v", {4},
                                 is_other ? options : ParameterOptions());
          },
          std::move(one), std::move(other)};
}

std::vector<Difference> differences() {
  const std::string v = "parameter 1 = \"v\" ";
  const std::string rule = "rule = adamw(learning_rate ";
  return {
      {"another shape",
       [](Given& given, bool other) {
         given.parameters.add("w", {other ? 5 : 4});
       },
       "parameter 0 = \"w\" float32[4]", "parameter 0 = \"w\" float32[5]"},
      {"another shape of as many elements",
       [](Given& given, bool other) {
         given.parameters.add("w", other ? std::vector<std::int64_t>{6}
                                         : std::vector<std::int64_t>{2, 3});
       },
       "float32[2,3]", "float32[6]"},
      {"another order",
       [](Given& given, bool other) {
         for (const char* name : {"a", "b"})
           given.parameters.add(other ? (*name == 'a' ? "b" : "a") : name, {4});
       },
       "parameter 0 = \"a\"", "parameter 0 = \"b\""},
      {"another name",
       [](Given& given, bool other) {
         given.parameters.add(other ? "weight" : "w", {4});
       },
       "parameter 0 = \"w\"", "parameter 0 = \"weight\""},
      {"another number of parameters",
       [](Given& given, bool other) {
         given.parameters.add("w", {4});
         if (other) given.parameters.add("v", {4});
       },
       "number of parameters = 1", "number of parameters = 2"},
      {"no parameters",
       [](Given& given, bool other) {
         if (!other) given.parameters.add("w", {4});
       },
       "number of parameters = 1", "number of parameters = 0"},
      declaration("another type", {.dtype = DType::float64}, v + "float32",
                  v + "float64"),
      declaration("another gradient type", {.gradient_dtype = DType::bfloat16},
                  "gradient float32", "gradient bfloat16"),
      declaration("another group", {.group = "other"}, "group \"default\"",
                  "group \"other\""),
      declaration("another chunk", {.chunk = 2}, "chunk 0", "chunk 2"),
      declaration("frozen", {.frozen = true}, v, ", frozen"),
      {"in memory of the caller",
       [](Given& given, bool other) {
         static float memory[8] = {};
         given.parameters.add("w", {4});
         if (other)
           given.parameters.add(
               "v", ExternalArray{.data = memory, .extents = {4}},
               ExternalArray{.data = memory + 4, .extents = {4}});
         else
           given.parameters.add("v", {4});
       },
       v + "float32", ", in memory of the caller"},
      declaration("kept", {.unmarked = Unmarked::keep}, v,
                  ", kept when unmarked"),
      declaration("split", {.model_parallel = ModelParallel::split}, v,
                  ", split"),
      declaration("tied", {.tied_to = "w"}, v, ", tied to \"w\""),
      option(
          "another rule", [](auto& o) { o.rule = Lion{}; }, rule + "0.001",
          "rule = lion("),
      option(
          "another learning rate",
          [](auto& o) { o.rule = AdamW{.learning_rate = 0.5}; }, rule + "0.001",
          rule + "0.5"),
      option(
          "the next learning rate",
          [](auto& o) {
            o.rule = AdamW{.learning_rate = std::nextafter(1e-3, 1.0)};
          },
          rule + "0.001", "0.0010000000000000002"),
      option(
          "another beta", [](auto& o) { o.rule = AdamW{.beta2 = 0.98}; },
          "beta2 0.999", "beta2 0.98"),
      option(
          "another flag", [](auto& o) { o.rule = AdamW{.maximize = true}; },
          "maximize 0", "maximize 1"),
      option(
          "a rule of a group", [](auto& o) { o.groups["default"] = Sgd{}; },
          "schedule = at_step", "rule of group \"default\" = sgd("),
      option(
          "schedule", [](auto& o) { o.schedule = Schedule::after_backward; },
          "schedule = at_step", "schedule = after_backward"),
      option(
          "gather", [](auto& o) { o.gather = GatherMode::overlapped; },
          "gather = at_step", "gather = overlapped"),
      option(
          "progress", [](auto& o) { o.progress = Progress::calls; },
          "progress = automatic", "progress = calls"),
      option(
          "clip_norm", [](auto& o) { o.clip_norm = 1.5; }, "clip_norm = none",
          "clip_norm = 1.5"),
      option(
          "nonfinite", [](auto& o) { o.nonfinite = Nonfinite::skip; },
          "nonfinite = automatic", "nonfinite = skip"),
      option(
          "throw_after",
          [](auto& o) { o.nonfinite = Nonfinite::throw_after(3); },
          "nonfinite = automatic", "nonfinite = throw_after(3)"),
      option(
          "constant scaler", [](auto& o) { o.scaler = Scaler::constant(8); },
          "scaler = none", "scaler = constant(8)"),
      option(
          "dynamic scaler", [](auto& o) { o.scaler = Scaler::dynamic(); },
          "scaler = none", "scaler = dynamic(initial_scale 65536"),
      option(
          "reduction", [](auto& o) { o.reduction = Reduction::sum; },
          "reduction = mean over ranks", "reduction = sum over ranks"),
      option(
          "divisor", [](auto& o) { o.reduction = Reduction::divide_by(3.5); },
          "reduction = mean", "/ 3.5"),
      option(
          "partition",
          [](auto& o) { o.plan.partition = Partition::parameters; },
          "plan.partition = elements", "plan.partition = parameters"),
      {"divide",
       [](Given& given, bool other) {
         given.parameters.add("w", {4});
         given.options.plan.partition = Partition::buckets;
         given.options.plan.divide = other;
       },
       "plan.divide = false", "plan.divide = true"},
      option(
          "bucket_bytes", [](auto& o) { o.plan.bucket_bytes = 999; },
          "plan.bucket_bytes = 26214400", "plan.bucket_bytes = 999"),
      option(
          "order of the plan",
          [](auto& o) {
            o.plan.order = {{1}, {0}};
          },
          "nothing more", "plan.order[0] = 1"),
  };
}

class Disagreement : public testing::Test {
 protected:
  void SetUp() override {
    if (ranks == 1) GTEST_SKIP() << "nobody to disagree with";
  }

  std::shared_ptr<Communicator> communicator = world();
  const int rank = communicator->rank();
  const int ranks = communicator->size();
};

// Case 30. Rank 0 differs from the others, rank 1, or the last one.
TEST_F(Disagreement, OfEachKindIsFoundOnEveryRank) {
  for (const Difference& difference : differences())
    for (const int who : {0, 1, ranks - 1}) {
      const std::string first = "rank 0 has ";
      const std::string teller = concat("rank ", who == 0 ? 1 : who, " has ");
      expect_refused({concat(difference.what, " on rank ", who),
                      [&] {
                        Given given;
                        difference.give(given, rank == who);
                        ShardedOptimizer(communicator, given.parameters,
                                         given.options);
                      },
                      {"ranks disagree", first, teller, difference.one,
                       difference.other, "give every rank the same"},
                      Found::collective});
    }
  ShardedOptimizer(communicator, ParameterSet());
}

TEST_F(Disagreement, NamesTheLowestRankAndItsFirstDifference) {
  expect_refused({"every rank has another shape and clip_norm",
                  [&] {
                    ParameterSet set;
                    set.add("w", {4 + rank});
                    OptimizerOptions options;
                    options.clip_norm = 1.0 + rank;
                    ShardedOptimizer(communicator, set, options);
                  },
                  {"rank 0 has parameter 0 = \"w\" float32[4]",
                   "rank 1 has parameter 0 = \"w\" float32[5]"},
                  Found::collective});
}

using Facts = std::vector<std::pair<std::string, std::string>>;

WrongCall of_facts(const std::shared_ptr<Communicator>& communicator,
                   const char* name, Facts facts, std::string problem,
                   std::vector<std::string> says) {
  return {name,
          [=] {
            detail::require_agreement(
                *communicator, {"test"},
                [&](const auto& fact) {
                  for (const auto& [key, value] : facts) fact(key, value);
                },
                problem);
          },
          std::move(says), Found::collective};
}

// Case 30: two libraries in one job.
TEST_F(Disagreement, OfLibraryVersions) {
  const std::string mine(version());
  for (const int who : {0, ranks - 1}) {
    const bool other = rank == who;
    const std::string at_0 = who == 0 ? "9.9.9" : mine;
    const std::string at_other = who == 0 ? mine : "9.9.9";
    expect_refused(of_facts(
        communicator, "another version",
        {{"library version", other ? "9.9.9" : mine}, {"rule", "sgd"}}, "",
        {"ranks disagree (test)", "rank 0 has library version = " + at_0,
         concat("rank ", who == 0 ? 1 : who, " has library version = ") +
             at_other}));
  }
}

TEST_F(Disagreement, OfFacts) {
  const bool last = rank == ranks - 1;
  const std::string who = concat("rank ", ranks - 1, " has ");
  expect_refused({
      of_facts(communicator, "more facts",
               last ? Facts{{"a", "1"}, {"b", "2"}} : Facts{{"a", "1"}}, "",
               {"rank 0 has nothing more", who + "b = 2"}),
      of_facts(communicator, "no facts", last ? Facts{} : Facts{{"a", "1"}}, "",
               {"rank 0 has a = 1", who + "nothing more"}),
      of_facts(communicator, "another border between name and value",
               last ? Facts{{"ab", "c"}} : Facts{{"a", "bc"}}, "",
               {"rank 0 has a = bc", who + "ab = c"}),
      of_facts(communicator, "a problem comes first",
               Facts{{"a", last ? "1" : "2"}}, last ? "no: fire" : "",
               {"no: fire", concat("found on rank ", ranks - 1)}),
      of_facts(communicator, "the lowest rank's problem comes first",
               Facts{{"a", "1"}}, concat("no: ", rank),
               {"no: 0", "found on rank 0"}),
  });
  detail::require_agreement(
      *communicator, {"test"}, [](const auto& fact) { fact("a", "1"); }, "");
}

}  // namespace
}  // namespace kzero::test
