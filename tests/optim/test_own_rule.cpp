// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Rules that are not the library's, from the optimizer to the checkpoint.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

struct Signum {
  static constexpr std::string_view name = "signum";
  static constexpr std::array<std::string_view, 1> state = {"momentum"};
  double learning_rate = 1e-3;
  double beta = 0.9;
  static constexpr Hyperparameter<Signum> hyperparameters[] = {
      {"learning_rate", &Signum::learning_rate}, {"beta", &Signum::beta}};

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    s[0] = T(beta) * s[0] + T(1.0 - beta) * g;
    p -= T(learning_rate) * (T(s[0] > T(0)) - T(s[0] < T(0)));
  }
};

/// AdamW with amsgrad once more: all that a rule can have.
struct OwnAdamW {
  static constexpr std::string_view name = "own_adamw";
  static constexpr std::string_view state[] = {"m", "v", "largest"};
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  double step_size = 0.0;        // of prepared()
  double root_correction = 1.0;  // of prepared()
  static constexpr Hyperparameter<OwnAdamW> hyperparameters[] = {
      {"learning_rate", &OwnAdamW::learning_rate},
      {"beta1", &OwnAdamW::beta1},
      {"beta2", &OwnAdamW::beta2},
      {"epsilon", &OwnAdamW::epsilon},
      {"weight_decay", &OwnAdamW::weight_decay}};

  void check() const {
    if (!(beta1 < 1.0 && beta2 < 1.0))
      throw InvalidArgument("own_adamw: a beta is not below 1");
  }

  OwnAdamW prepared(std::int64_t t) const {
    OwnAdamW copy = *this;
    const double count = static_cast<double>(t);
    copy.step_size = learning_rate / (1.0 - std::pow(beta1, count));
    copy.root_correction = std::sqrt(1.0 - std::pow(beta2, count));
    return copy;
  }

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    s[0] = T(beta1) * s[0] + T(1.0 - beta1) * g;
    s[1] = T(beta2) * s[1] + T(1.0 - beta2) * g * g;
    s[2] = s[2] > s[1] ? s[2] : s[1];
    p *= T(1.0 - learning_rate * weight_decay);
    p -= T(step_size) * s[0] /
         (std::sqrt(s[2]) / T(root_correction) + T(epsilon));
  }
};

constexpr std::array<std::int64_t, 7> sizes = {777, 64, 1, 0, 1301, 130, 63};

double start(std::int64_t parameter, std::int64_t i) {
  return std::sin(1.0 + double(i) * 0.7 + double(parameter));
}

/// Of all ranks together; a rank has its share of it.
double gradient(int step, std::int64_t parameter, std::int64_t i) {
  return std::cos(double(3 * step + 1) + double(i) * 1.3 + double(parameter));
}

ParameterSet model_of(std::initializer_list<DType> dtypes) {
  ParameterSet model;
  for (std::size_t p = 0; p < sizes.size(); ++p)
    model.add(detail::concat("p", p), {sizes[p]},
              typed(std::data(dtypes)[p % dtypes.size()]));
  return model;
}

constexpr std::initializer_list<DType> all_types = {
    DType::float32, DType::bfloat16, DType::float16, DType::float64};

ShardedOptimizer make(const Rule& rule, std::initializer_list<DType> dtypes,
                      std::int64_t bucket_bytes = 1500) {
  OptimizerOptions options;
  options.rule = rule;
  options.plan.bucket_bytes = bucket_bytes;
  ShardedOptimizer optimizer(world(), model_of(dtypes), options);
  for (std::int64_t p = 0; p < std::ssize(sizes); ++p)
    write_parameter(optimizer, {p}, [&](auto i) { return start(p, i); });
  return optimizer;
}

void train(ShardedOptimizer& optimizer, int first, int last) {
  const auto& communicator = *optimizer.communicator();
  const double share =
      2.0 * (communicator.rank() + 1) / (communicator.size() + 1.0);
  for (int step = first; step < last; ++step) {
    for (std::int64_t p = 0; p < optimizer.parameters().size(); ++p)
      fill_gradient(optimizer, {p},
                    [&](auto i) { return share * gradient(step, p, i); });
    ASSERT_TRUE(optimizer.step().updated());
  }
}

// Half a unit in the last place of 16-bit parameters, relative.
double rounding(DType dtype) {
  return dtype == DType::float16    ? 0x1p-11
         : dtype == DType::bfloat16 ? 0x1p-8
                                    : 0.0;
}

TEST(OwnRule, FollowsASerialComputation) {
  const Signum rule{.learning_rate = 0.01, .beta = 0.8};
  auto optimizer = make(rule, all_types);
  ASSERT_GT(optimizer.plan().buckets().size(), 4u);
  train(optimizer, 0, 8);
  for (std::int64_t p = 0; p < std::ssize(sizes); ++p) {
    const DType dtype = optimizer.parameters()[{p}].dtype;
    const auto got = read_parameter(optimizer, {p});
    ASSERT_EQ(std::ssize(got), sizes[std::size_t(p)]);
    for (std::int64_t i = 0; i < std::ssize(got); ++i) {
      double value = start(p, i), momentum = 0.0;
      for (int step = 0; step < 8; ++step) {
        momentum = 0.8 * momentum + (1.0 - 0.8) * gradient(step, p, i);
        value += momentum > 0.0 ? -0.01 : momentum < 0.0 ? 0.01 : 0.0;
      }
      // 16-bit parameters start from a rounded value.
      const double relative = dtype == DType::float64 ? 1e-12 : 1e-5;
      const double tolerance =
          (relative + 2.0 * rounding(dtype)) * (std::abs(value) + 0.1);
      ASSERT_NEAR(got[std::size_t(i)], value, tolerance)
          << to_string(dtype) << " parameter " << p << ", element " << i;
    }
  }
}

// Main parameters carry what 16 bits do not hold.
template <class Half>
void check_rounded_twin() {
  auto optimizer = make(Signum{.learning_rate = 1e-4}, {dtype_of<Half>});
  auto twin = make(Signum{.learning_rate = 1e-4}, {DType::float32});
  for (std::int64_t p = 0; p < std::ssize(sizes); ++p)
    write_parameter(twin, {p},
                    [&](auto i) { return float(Half(float(start(p, i)))); });
  train(optimizer, 0, 20);
  train(twin, 0, 20);
  const auto got = read_all(optimizer), main = read_all(twin);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], double(float(Half(float(main[i]))))) << i;
}

TEST(OwnRule, RoundsMainParametersTo16Bits) {
  check_rounded_twin<bfloat16>();
  check_rounded_twin<float16>();
}

TEST(OwnRule, HasTheSameBitsForEveryBucketSize) {
  for (const Rule& rule : {Rule(Signum{}), Rule(OwnAdamW{})}) {
    auto small = make(rule, all_types, 100);
    auto large = make(rule, all_types, 25 << 20);
    train(small, 0, 5);
    train(large, 0, 5);
    EXPECT_EQ(read_all(small), read_all(large)) << rule.name();
  }
}

TEST(OwnRule, EqualsTheBuiltInRuleThatItRepeats) {
  for (DType dtype : {DType::float32, DType::float64}) {
    auto own = make(OwnAdamW{.learning_rate = 0.01}, {dtype});
    auto built_in =
        make(AdamW{.learning_rate = 0.01, .amsgrad = true}, {dtype});
    train(own, 0, 10);
    train(built_in, 0, 10);
    const auto got = read_all(own), expected = read_all(built_in);
    const double tolerance = dtype == DType::float64 ? 1e-13 : 1e-5;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], tolerance)
          << to_string(dtype) << " " << i;
  }
}

TEST(OwnRule, IsSeenAndSetByItsGroup) {
  auto optimizer = make(Signum{.learning_rate = 0.5}, {DType::float64});
  Group group = optimizer.group("default");
  EXPECT_EQ(group.rule(), "signum");
  EXPECT_EQ(group.get("learning_rate"), 0.5);
  group.set("learning_rate", 0.25);
  group.set("beta", 0.0);
  EXPECT_THROW(group.set("beta", std::nan("")), InvalidArgument);
  EXPECT_THROW(group.set("momentum", 0.5), InvalidArgument);
  EXPECT_EQ(group.get("beta"), 0.0);
  train(optimizer, 0, 1);
  const auto got = read_parameter(optimizer, {0});
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double moved = gradient(0, 0, std::int64_t(i)) > 0 ? 0.25 : -0.25;
    ASSERT_NEAR(got[i], start(0, std::int64_t(i)) - moved, 1e-12);
  }
  EXPECT_NE(optimizer.describe().find("signum(learning_rate 0.25"),
            std::string::npos)
      << optimizer.describe();
}

TEST(OwnRule, StandsBesideOthers) {
  ParameterSet model;
  const auto own = model.add("own", {100});
  ParameterOptions in_group;
  in_group.group = "plain";
  const auto plain = model.add("plain", {100}, in_group);
  OptimizerOptions options;
  options.rule = Signum{.learning_rate = 0.5};
  options.groups["plain"] = Sgd{.learning_rate = 2.0};
  ShardedOptimizer optimizer(world(), model, options);
  ASSERT_EQ(optimizer.plan().buckets().size(), 1u);
  for (const ParameterId id : {own, plain})
    fill_gradient(optimizer, id, [](auto) { return 0.25; });
  optimizer.step();
  EXPECT_EQ(read_parameter(optimizer, own), std::vector<double>(100, -0.5));
  EXPECT_EQ(read_parameter(optimizer, plain), std::vector<double>(100, -0.5));
}

TEST(OwnRule, MustBeTheSameOnAllRanks) {
  const auto communicator = world();
  if (communicator->size() == 1) GTEST_SKIP() << "takes two ranks";
  const bool last = communicator->rank() == communicator->size() - 1;
  const auto text = message_of<InvalidArgument>(
      [&] { make(Signum{.beta = last ? 0.5 : 0.75}, {DType::float32}); });
  EXPECT_NE(text.find("beta 0.5"), std::string::npos) << text;
  EXPECT_NE(text.find("beta 0.75"), std::string::npos) << text;

  auto optimizer = make(Signum{}, {DType::float32});
  const auto before = read_all(optimizer);
  optimizer.group("default").set("beta", last ? 0.5 : 0.75);
  EXPECT_THROW(optimizer.step(), InvalidArgument);
  EXPECT_EQ(read_all(optimizer), before);
}

#if KZERO_HAVE_HDF5

TEST(OwnRule, CheckpointBringsEverythingBack) {
  for (const Rule& rule :
       {Rule(Signum{.beta = 0.75}), Rule(OwnAdamW{.beta1 = 0.75})}) {
    const ScratchFolder folder(MPI_COMM_WORLD);
    auto optimizer = make(rule, all_types);
    train(optimizer, 0, 3);
    optimizer.group("default").set("learning_rate", 0.125);
    save_checkpoint(optimizer, folder / "own.h5");
    const Snapshot saved = snapshot(optimizer, MPI_COMM_WORLD);
    const std::string array = rule.name() == "signum" ? "p0|momentum" : "p0|v";
    ASSERT_EQ(saved.count(array), 1u);
    EXPECT_NE(saved.at(array), std::string(saved.at(array).size(), '\0'));
    train(optimizer, 3, 6);

    Rule fresh = rule;
    fresh.set(fresh.hyperparameters()[1], 0.5);
    auto loaded = make(fresh, all_types, 4000);
    load_checkpoint(loaded, folder / "own.h5");
    EXPECT_TRUE(equal(snapshot(loaded, MPI_COMM_WORLD), saved));
    EXPECT_EQ(loaded.group("default").get("learning_rate"), 0.125);
    train(loaded, 3, 6);
    EXPECT_TRUE(equal(snapshot(loaded, MPI_COMM_WORLD),
                      snapshot(optimizer, MPI_COMM_WORLD)));
  }
}

TEST(OwnRule, CheckpointOfAnotherRuleIsRefused) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  auto optimizer = make(Signum{}, {DType::float32});
  save_checkpoint(optimizer, folder / "own.h5");
  for (const Rule& rule : {Rule(Lion{}), Rule(OwnAdamW{})}) {
    auto other = make(rule, {DType::float32});
    const auto text = message_of<CheckpointError>(
        [&] { load_checkpoint(other, folder / "own.h5"); });
    EXPECT_NE(text.find("signum"), std::string::npos) << text;
    EXPECT_NE(text.find(rule.name()), std::string::npos) << text;
  }
}

#endif

}  // namespace
}  // namespace kzero::test
