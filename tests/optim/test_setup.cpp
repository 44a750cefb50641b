// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Construction, views, start values: what is refused and with which words.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

class Setup : public testing::Test {
 protected:
  std::string refusal(const ParameterSet& model,
                      const OptimizerOptions& options = {}) {
    return message_of<InvalidArgument>(
        [&] { ShardedOptimizer(communicator, model, options); });
  }

  static void expect_contains(const std::string& text,
                              std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(text.find(part), std::string::npos)
          << "'" << part << "' is not in: " << text;
  }

  static ParameterSet one(std::int64_t size, DType dtype = DType::float32) {
    ParameterSet model;
    model.add("w", {size}, typed(dtype));
    return model;
  }

  std::shared_ptr<Communicator> communicator = world();
  const int rank = communicator->rank();
  const int ranks = communicator->size();
  const bool is_last = rank == ranks - 1;
};

TEST_F(Setup, RanksThatDisagreeAllThrowTheSame) {
  if (ranks == 1) return;  // nobody to disagree with
  const int last = ranks - 1;
  const std::string who = detail::concat("rank ", last, " has ");
  expect_contains(refusal(one(is_last ? 5 : 4)),
                  {"parameter 0", "[4]", "[5]", "rank 0 has", who.c_str()});
  expect_contains(refusal(one(4, is_last ? DType::float64 : DType::float32)),
                  {"float32", "float64"});

  ParameterSet more = one(4);
  if (is_last) more.add("v", {2});
  expect_contains(refusal(more),
                  {"number of parameters = 1", "number of parameters = 2"});

  ParameterSet order;
  for (const char* name : {"a", "b"})
    order.add(is_last ? name : (*name == 'a' ? "b" : "a"), {1});
  expect_contains(refusal(order), {"parameter 0", "\"a\"", "\"b\""});

  OptimizerOptions options;
  options.rule = AdamW{.learning_rate = is_last ? 0.1 : 0.2};
  expect_contains(refusal(one(4), options),
                  {"learning_rate 0.1", "learning_rate 0.2"});
  options = {};
  if (is_last) options.clip_norm = 1.0;
  expect_contains(refusal(one(4), options), {"clip_norm = none", "clip_norm"});
  options = {};
  options.plan.bucket_bytes = is_last ? 1000 : 2000;
  expect_contains(refusal(one(4), options), {"plan.bucket_bytes"});
}

TEST_F(Setup, WhatOneRankFindsWrongReachesAll) {
  OptimizerOptions options;
  if (is_last) options.clip_norm = -1.0;
  expect_contains(refusal(one(4), options), {"clip_norm is -1"});
  if (ranks > 1)
    expect_contains(refusal(one(4), options),
                    {detail::concat("found on rank ", ranks - 1).c_str()});
}

TEST_F(Setup, WrongOptionsAreRefused) {
  OptimizerOptions options;
  options.clip_norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(ShardedOptimizer(communicator, one(4), options),
               InvalidArgument);
  options = {};
  options.plan.bucket_bytes = 0;
  EXPECT_THROW(ShardedOptimizer(communicator, one(4), options),
               InvalidArgument);
  options = {};
  options.plan.ranks = ranks + 1;
  expect_contains(refusal(one(4), options), {"plan.ranks"});
  options = {};
  options.plan.order = {ParameterId{0}, ParameterId{0}};
  EXPECT_THROW(ShardedOptimizer(communicator, one(4), options),
               InvalidArgument);
  EXPECT_THROW(ShardedOptimizer(nullptr, one(4), {}), InvalidArgument);
  EXPECT_THROW(Reduction::divide_by(0.0), InvalidArgument);
  EXPECT_THROW(Nonfinite::throw_after(0), InvalidArgument);
}

TEST_F(Setup, ViewsAreTypedAndShaped) {
  ParameterSet model;
  const auto matrix = model.add("matrix", {3, 4});
  const auto half = model.add("half", {5}, typed(DType::bfloat16));
  const auto scalar = model.add("scalar", {});
  const auto cube = model.add("cube", {2, 3, 4}, typed(DType::float64));
  ShardedOptimizer optimizer(communicator, model);

  const auto m = optimizer.parameter<float**>(matrix);
  EXPECT_EQ(m.extent(0), 3u);
  EXPECT_EQ(m.extent(1), 4u);
  m(2, 3) = 7.0f;
  EXPECT_EQ(optimizer.parameter<const float*>(matrix)(11), 7.0f);
  EXPECT_EQ((optimizer.parameter<float* [4]>(matrix)(2, 3)), 7.0f);
  EXPECT_EQ((optimizer.parameter<float[3][4]>(matrix)(2, 3)), 7.0f);
  EXPECT_EQ(optimizer.parameter<float>(scalar)(), 0.0f);
  EXPECT_EQ(optimizer.parameter<float*>(scalar).extent(0), 1u);
  EXPECT_EQ(optimizer.parameter<const double***>(cube).extent(2), 4u);
  EXPECT_EQ(optimizer.gradient<float*>(half).extent(0), 5u);

  const auto refused = [&](auto&& call) {
    return message_of<InvalidArgument>(call);
  };
  expect_contains(refused([&] { optimizer.parameter<double**>(matrix); }),
                  {"\"matrix\"", "float32", "float64"});
  expect_contains(refused([&] { optimizer.parameter<float***>(matrix); }),
                  {"\"matrix\"", "2 extents", "3"});
  expect_contains(refused([&] { optimizer.parameter<float* [5]>(matrix); }),
                  {"\"matrix\"", "4", "5"});
  expect_contains(refused([&] { optimizer.gradient<bfloat16*>(half); }),
                  {"gradient", "\"half\"", "float32", "bfloat16"});
  EXPECT_THROW(optimizer.parameter<float*>(ParameterId{9}), InvalidArgument);
  EXPECT_THROW(optimizer.parameter<float*>(ParameterId{}), InvalidArgument);
}

TEST_F(Setup, StartValuesReachEveryRankAndMainParameter) {
  ParameterSet model;
  const auto a = model.add("a", {200}, typed(DType::bfloat16));
  const auto b = model.add("b", {3, 50});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  options.plan.bucket_bytes = 100;
  ShardedOptimizer optimizer(communicator, model, options);
  for (int root = 0; root < ranks; ++root) {
    optimizer.write_parameters(root, [&](ParameterWriter& writer) {
      EXPECT_EQ(rank, root);
      Kokkos::deep_copy(writer.parameter<bfloat16*>(a),
                        bfloat16(1.0f + float(root)));
      Kokkos::deep_copy(writer.parameter<float**>(b), 2.0f);
    });
    EXPECT_EQ(read_parameter(optimizer, a),
              std::vector<double>(200, 1.0 + root));
    optimizer.zero_gradients();
    optimizer.step();  // writes the parameters from the main parameters
    EXPECT_EQ(read_parameter(optimizer, a),
              std::vector<double>(200, 1.0 + root));
    EXPECT_EQ(read_parameter(optimizer, b), std::vector<double>(150, 2.0));
  }
}

TEST_F(Setup, BroadcastAndReload) {
  ParameterSet model;
  const auto a = model.add("a", {200}, typed(DType::float16));
  OptimizerOptions options;
  options.rule = Sgd{};
  ShardedOptimizer optimizer(communicator, model, options);
  const auto view = optimizer.parameter<float16*>(a);
  Kokkos::deep_copy(view, float16(1.0f + float(rank)));
  optimizer.broadcast_parameters(ranks - 1);
  EXPECT_EQ(read_parameter(optimizer, a), std::vector<double>(200, ranks));
  Kokkos::deep_copy(view, float16(0.5f));
  optimizer.reload_main_from_parameters();
  optimizer.step();
  EXPECT_EQ(read_parameter(optimizer, a), std::vector<double>(200, 0.5));
  EXPECT_THROW(optimizer.broadcast_parameters(ranks), InvalidArgument);
}

TEST_F(Setup, ExceptionOfTheWriterReachesEveryRank) {
  ParameterSet model = one(4);
  ShardedOptimizer optimizer(communicator, model);
  expect_contains(message_of<InvalidArgument>([&] {
                    optimizer.write_parameters(0, [](ParameterWriter&) {
                      throw std::runtime_error("no such file");
                    });
                  }),
                  {"no such file"});
  // What was written until then is the same on every rank, and steps go on.
  EXPECT_THROW(optimizer.write_parameters(
                   0,
                   [](ParameterWriter& writer) {
                     Kokkos::deep_copy(writer.parameter<float*>({0}), 7.0f);
                     throw std::runtime_error("half-way");
                   }),
               InvalidArgument);
  EXPECT_EQ(read_parameter(optimizer, {0}), std::vector<double>(4, 7.0));
  optimizer.write_parameters(0, [](ParameterWriter&) {});
}

TEST_F(Setup, DescribesItself) {
  ShardedOptimizer optimizer(communicator, one(1000));
  expect_contains(optimizer.describe(),
                  {"1 parameter", "adamw(learning_rate 0.001", "ordered sum",
                   "mean over ranks", "25 MiB"});
}

TEST_F(Setup, MovesAndLeavesNothingBehind) {
  ParameterSet model = one(100);
  ShardedOptimizer first(communicator, model);
  fill_gradient(first, {0}, [](auto) { return 1.0; });
  ShardedOptimizer second = std::move(first);
  second.step();
  ShardedOptimizer third(communicator, one(3));
  third = std::move(second);
  third.step();
  EXPECT_EQ(third.update_count({0}), 2);
}

// Every element of a parameter is owned by exactly one rank.
TEST_F(Setup, SegmentsCoverEachParameterOnce) {
  ParameterSet model;
  for (std::int64_t size : {5, 0, 1000, 64, 129})
    model.add(detail::concat("p", size), {size});
  ShardedOptimizer optimizer(communicator, model);
  for (std::int64_t p = 0; p < model.size(); ++p) {
    const auto size = model[{p}].size;
    std::vector<std::int64_t> owners(std::size_t(size), 0);
    for (const Segment& segment : optimizer.segments({p})) {
      EXPECT_EQ(segment.parameter, ParameterId{p});
      for (auto i = segment.in_parameter.begin; i < segment.in_parameter.end;
           ++i)
        ++owners[std::size_t(i)];
    }
    communicator->all_reduce_sum(std::span(owners), {"test"});
    EXPECT_EQ(owners, std::vector<std::int64_t>(std::size_t(size), 1));
  }
}

// The state of P ranks is a P-th on each.
TEST_F(Setup, StateIsSharded) {
  for (DType dtype : {DType::bfloat16, DType::float32, DType::float64}) {
    constexpr std::int64_t elements = 64 * 12 * 100;
    ShardedOptimizer optimizer(communicator, one(elements, dtype));
    const Memory memory = optimizer.memory();
    const std::int64_t main = size_of(main_dtype(dtype));
    EXPECT_EQ(memory.moments, 2 * main * elements / ranks);
    EXPECT_EQ(memory.main, size_of(dtype) == 2 ? 4 * elements / ranks : 0);
    EXPECT_EQ(memory.averaged, 0);
    EXPECT_EQ(memory.parameters, size_of(dtype) * elements);
    EXPECT_EQ(memory.gradients, main * elements);
  }
}

}  // namespace
}  // namespace kzero::test
