// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Ordered sum, statistics and updates against computations written out here,
// element by element, for every instruction set.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/arithmetic.hpp"
#include "kernels/every_set.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

// The recursive definition: S(a, b) = S(a, a + k) + S(a + k, b), k the largest
// power of two below b - a.
template <class Sum, class In>
Sum tree(const std::vector<std::vector<In>>& inputs, std::size_t a,
         std::size_t b, std::size_t element) {
  if (b - a == 1) return static_cast<Sum>(inputs[a][element]);
  const std::size_t k = std::bit_floor(b - a - 1);
  const Sum left = tree<Sum>(inputs, a, a + k, element);
  const Sum right = tree<Sum>(inputs, a + k, b, element);
  return left + right;
}

template <class In, class Sum, class Out>
void check_sum(std::size_t ranks, std::size_t count) {
  constexpr std::size_t first = 3;
  std::vector<std::vector<In>> inputs;
  std::vector<Contribution> parts;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    inputs.push_back(random_values<In>(first + count, unsigned(rank) + 1));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    parts.push_back({inputs[rank].data(), int(rank), 1});
  std::vector<Out> out(count + 1, Out(-7));
  const double scale = 1.0 / static_cast<double>(ranks);
  TileStatistics statistics;

  host_kernels().sum[std::size_t(dtype_of<In>)][sizeof(Out) == 8](
      {std::data(parts), std::size(parts), first, std::int64_t(count), scale,
       out.data()},
      statistics);

  double squares = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const Sum expected =
        tree<Sum>(inputs, 0, ranks, first + i) * static_cast<Sum>(scale);
    ASSERT_EQ(out[i], static_cast<Out>(expected)) << ranks << " ranks, " << i;
    const double stored = double(static_cast<Out>(expected));
    squares += stored * stored;
  }
  EXPECT_EQ(out[count], Out(-7)) << "wrote past the end";
  EXPECT_NEAR(statistics.squares, squares, 1e-12 * (squares + 1.0));
}

TEST_F(EverySet, SumIsTheOrderedSumForAllTypes) {
  for_each_set([] {
    for (std::size_t ranks : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u, 64u, 100u})
      for (std::size_t count : {0u, 1u, 15u, 16u, 255u, 256u, 257u, 2048u}) {
        check_sum<float, float, float>(ranks, count);
        check_sum<bfloat16, float, float>(ranks, count);
        check_sum<float16, float, float>(ranks, count);
        check_sum<double, double, double>(ranks, count);
        check_sum<float, float, double>(ranks, count);
        check_sum<bfloat16, float, double>(ranks, count);
        check_sum<float16, float, double>(ranks, count);
        check_sum<double, double, float>(ranks, count);
      }
  });
}

// Sums of aligned power-of-two blocks are subtrees: the bits are kept.
TEST_F(EverySet, BlocksGiveTheSameBitsAsRanks) {
  constexpr std::size_t ranks = 48, count = 100;
  std::vector<std::vector<float>> inputs;
  std::vector<Contribution> parts;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    inputs.push_back(random_values<float>(count, unsigned(rank)));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    parts.push_back({inputs[rank].data(), int(rank), 1});
  for_each_set([&] {
    std::vector<float> all(count), low(count), high(count), blocks(count);
    ordered_sum(parts, DType::float32, count, all.data());
    ordered_sum(std::span(parts).first(32), DType::float32, count, low.data());
    ordered_sum(std::span(parts).subspan(32), DType::float32, count,
                high.data());
    const Contribution two[] = {{low.data(), 0, 32}, {high.data(), 32, 16}};
    ordered_sum(two, DType::float32, count, blocks.data());
    EXPECT_EQ(all, blocks);
  });
}

// Golden values of numerics.
TEST_F(EverySet, SixteenBitValuesAreSummedInFloat32) {
  for_each_set([] {
    std::vector<bfloat16> values = {bfloat16(256.0f)};
    values.resize(8, bfloat16(1.0f));
    std::vector<Contribution> parts;
    for (int rank = 0; rank < 8; ++rank)
      parts.push_back({&values[std::size_t(rank)], rank, 1});
    float mean = 0.0f;
    TileStatistics statistics;
    host_kernels().sum[std::size_t(DType::bfloat16)][0](
        {std::data(parts), std::size(parts), 0, 1, 1.0 / 8, &mean}, statistics);
    EXPECT_EQ(mean, 32.875f);
  });
}

TEST_F(EverySet, TreeKeepsWhatARunningSumLoses) {
  for_each_set([] {
    const float values[] = {1.0f, 0x1p-24f, 0x1p-24f, 0x1p-24f};
    std::vector<Contribution> parts;
    for (int rank = 0; rank < 4; ++rank)
      parts.push_back({&values[rank], rank, 1});
    float sum = 0.0f;
    ordered_sum(parts, DType::float32, 1, &sum);
    EXPECT_EQ(sum, 1.0f + 0x1p-23f);
  });
}

TEST_F(EverySet, OutMayBeOneOfTheParts) {
  for_each_set([] {
    auto mine = random_values<float>(1000, 1);
    const auto theirs = random_values<float>(1000, 2);
    const auto before = mine;
    const Contribution parts[] = {{theirs.data(), 0, 1}, {mine.data(), 1, 1}};
    TileStatistics statistics;
    host_kernels().sum[std::size_t(DType::float32)][0](
        {std::data(parts), std::size(parts), 0, 1000, 0.5, mine.data()},
        statistics);
    for (std::size_t i = 0; i < 1000; ++i)
      ASSERT_EQ(mine[i], (theirs[i] + before[i]) * 0.5f);
  });
}

template <class T>
void check_counts() {
  using Limits = std::numeric_limits<float>;
  std::vector<T> values(600, T(1.0f));
  values[0] = T(0.0f);
  values[17] = T(-0.0f);
  values[599] = T(0.0f);
  values[3] = T(Limits::infinity());
  values[300] = T(-Limits::infinity());
  values[598] = T(Limits::quiet_NaN());
  const Contribution part[] = {{values.data(), 0, 1}};
  std::vector<double> out(600);
  TileStatistics statistics;
  host_kernels().sum[std::size_t(dtype_of<T>)][1](
      {part, 1, 0, 600, 1.0, out.data()}, statistics);
  EXPECT_EQ(statistics.zeros, 3);
  EXPECT_EQ(statistics.nonfinite, 3);
}

TEST_F(EverySet, ZerosAndNonfiniteAreCounted) {
  for_each_set([] {
    check_counts<float16>();
    check_counts<bfloat16>();
    check_counts<float>();
    check_counts<double>();
  });
}

TEST_F(EverySet, DenormalsAreNeitherZeroNorLostInTheSum) {
  for_each_set([] {
    const float values[] = {0x1p-140f, 0x1p-140f};
    const Contribution parts[] = {{&values[0], 0, 1}, {&values[1], 1, 1}};
    float sum = 0.0f;
    TileStatistics statistics;
    host_kernels().sum[std::size_t(DType::float32)][0](
        {std::data(parts), std::size(parts), 0, 1, 1.0, &sum}, statistics);
    EXPECT_EQ(sum, 0x1p-139f);
    EXPECT_EQ(statistics.zeros, 0);
  });
}

TEST_F(EverySet, SumOfFloatsThatOverflowsIsNotFinite) {
  for_each_set([] {
    const float values[] = {3e38f, 3e38f};
    const Contribution parts[] = {{&values[0], 0, 1}, {&values[1], 1, 1}};
    float sum = 0.0f;
    TileStatistics statistics;
    host_kernels().sum[std::size_t(DType::float32)][0](
        {std::data(parts), std::size(parts), 0, 1, 0.5, &sum}, statistics);
    EXPECT_EQ(statistics.nonfinite, 1);
  });
}

// All before that is done and counted, and the parts are as they were from
// there on.
TEST_F(EverySet, SumStopsBeforeWhatIsNotFinite) {
  for (const std::int64_t bad : {0, 255, 256, 700, 999}) {
    for_each_set([&] {
      std::vector<float> own(1000, 1.0f);
      const std::vector<float> other(1000, 2.0f);
      own[std::size_t(bad)] = std::numeric_limits<float>::infinity();
      const std::vector<float> before = own;
      const Contribution parts[] = {{own.data(), 0, 1}, {other.data(), 1, 1}};
      TileStatistics statistics;
      const std::int64_t done =
          host_kernels().sum[std::size_t(DType::float32)][0](
              {parts, 2, 0, 1000, 0.5, own.data(), true}, statistics);
      EXPECT_LE(done, bad);
      EXPECT_GT(done + 256, bad);
      for (std::int64_t i = 0; i < 1000; ++i)
        EXPECT_EQ(own[std::size_t(i)],
                  i < done ? 1.5f : before[std::size_t(i)]);
      EXPECT_EQ(statistics.squares, double(done) * 2.25);
      EXPECT_EQ(statistics.zeros, 0);
      EXPECT_EQ(statistics.nonfinite, 0);
    });
  }
}

// Doubles that float32 does not hold: what counts is what is stored.
TEST_F(EverySet, NarrowingIsCountedAsStored) {
  for_each_set([] {
    const double values[] = {1e39, 1e-60, 1.0};
    const Contribution part[] = {{values, 0, 1}};
    float out[3];
    TileStatistics statistics;
    host_kernels().sum[std::size_t(DType::float64)][0](
        {part, 1, 0, 3, 1.0, out}, statistics);
    EXPECT_EQ(statistics.nonfinite, 1);
    EXPECT_EQ(statistics.zeros, 1);
  });
}

// The squares are added in an order of their own: the same on all sets.
TEST_F(EverySet, SquaresHaveTheSameBitsOnAllSets) {
  const auto values = random_values<float>(2048, 5);
  for (std::int64_t count : {1, 100, 255, 300, 2048}) {
    std::vector<double> results;
    for_each_set([&] {
      const Contribution part[] = {{values.data(), 0, 1}};
      std::vector<float> out(2048);
      TileStatistics statistics;
      host_kernels().sum[std::size_t(DType::float32)][0](
          {part, 1, 0, count, 1.0, out.data()}, statistics);
      results.push_back(statistics.squares);
    });
    for (double result : results) EXPECT_EQ(result, results.front());
  }
}

// One element at a time, by the arithmetic's own function on this machine.
template <template <class> class Step, class T, class Parameter>
void check_update(UpdateKernel kernel, const Step<T>& step,
                  std::int64_t count) {
  const auto n = std::size_t(count);
  const auto gradient = random_values<T>(n, 1);
  std::vector<T> main = random_values<T>(n, 2);
  std::vector<T> state[3];
  for (auto& array : state) {
    array = random_values<T>(n, 3);
    for (T& value : array) value = std::abs(value);
  }
  auto expected_main = main;
  std::vector<T> expected_state[3] = {state[0], state[1], state[2]};
  std::vector<Parameter> parameter(n + 1), expected(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    T s[3] = {state[0][i], state[1][i], state[2][i]};
    step(gradient[i] * static_cast<T>(0.5), expected_main[i], s);
    for (int k = 0; k < Step<T>::state_arrays; ++k) expected_state[k][i] = s[k];
    expected[i] = static_cast<Parameter>(expected_main[i]);
  }

  UpdateTile tile;
  tile.step = &step;
  tile.gradient_factor = 0.5;
  tile.gradient = gradient.data();
  tile.main = main.data();
  tile.parameter = sizeof(Parameter) == 2 ? parameter.data() : nullptr;
  for (std::size_t k = 0; k < 3; ++k) tile.state[k] = state[k].data();
  tile.count = count;
  {
    const FlushDenormals flush;
    host_kernels()
        .update[std::size_t(kernel)][std::size_t(dtype_of<Parameter>)](tile);
  }

  EXPECT_EQ(main, expected_main);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(state[k], expected_state[k]);
  if (sizeof(Parameter) == 2) {
    EXPECT_EQ(std::memcmp(parameter.data(), expected.data(), 2 * (n + 1)), 0);
  }
}

template <class T, class Parameter>
void check_updates() {
  const AdamWStep<T> adamw = {T(0.999), T(0.1),  T(0.99), T(0.01),
                              T(0.05),  T(1.25), T(1e-8)};
  const AmsgradStep<T> amsgrad = {adamw};
  const SgdStep<T> sgd = {T(0.1), T(0.01)};
  const MomentumStep<T> momentum = {T(0.1), T(0.01), T(0.9),
                                    T(1),   T(1),    T(0.9)};
  const AdamStep<T> adam = {adamw, T(0.01)};
  const AdamAmsgradStep<T> adam_amsgrad = {amsgrad, T(0.01)};
  const AdagradStep<T> adagrad = {T(0.1), T(0.01), T(1), T(0.25), T(1e-8)};
  const LionStep<T> lion = {T(0.1), T(0.999), T(0.9), T(0.1), T(0.99), T(0.01)};
  const T rmsprop[] = {T(0.1), T(0.01), T(0.9), T(0.1), T(1e-8), T(0.5)};
  const auto coefficients = [&](auto& step) {
    step = {rmsprop[0], rmsprop[1], rmsprop[2],
            rmsprop[3], rmsprop[4], rmsprop[5]};
  };
  RmsPropPlainStep<T> plain;
  RmsPropMomentumStep<T> moving;
  RmsPropCenteredStep<T> centered;
  RmsPropCenteredMomentumStep<T> centered_moving;
  coefficients(plain);
  coefficients(moving);
  coefficients(centered);
  coefficients(centered_moving);
  for (std::int64_t count : {0, 1, 7, 16, 33, 64, 1023, 2048}) {
    check_update<AdamWStep, T, Parameter>(UpdateKernel::adamw, adamw, count);
    check_update<AmsgradStep, T, Parameter>(UpdateKernel::amsgrad, amsgrad,
                                            count);
    check_update<SgdStep, T, Parameter>(UpdateKernel::sgd, sgd, count);
    check_update<MomentumStep, T, Parameter>(UpdateKernel::momentum, momentum,
                                             count);
    check_update<AdamStep, T, Parameter>(UpdateKernel::adam, adam, count);
    check_update<AdamAmsgradStep, T, Parameter>(UpdateKernel::adam_amsgrad,
                                                adam_amsgrad, count);
    check_update<AdagradStep, T, Parameter>(UpdateKernel::adagrad, adagrad,
                                            count);
    check_update<RmsPropPlainStep, T, Parameter>(UpdateKernel::rmsprop, plain,
                                                 count);
    check_update<RmsPropMomentumStep, T, Parameter>(
        UpdateKernel::rmsprop_momentum, moving, count);
    check_update<RmsPropCenteredStep, T, Parameter>(
        UpdateKernel::rmsprop_centered, centered, count);
    check_update<RmsPropCenteredMomentumStep, T, Parameter>(
        UpdateKernel::rmsprop_centered_momentum, centered_moving, count);
    check_update<LionStep, T, Parameter>(UpdateKernel::lion, lion, count);
  }
}

TEST_F(EverySet, UpdatesEqualTheArithmeticOfOneElement) {
  for_each_set([] {
    check_updates<float, float>();
    check_updates<float, bfloat16>();
    check_updates<float, float16>();
    check_updates<double, double>();
  });
}

// Squares in 16 lanes, lane i % 16, whose sums are added in halves.
template <class T>
double lane_squares(const std::vector<T>& values) {
  double lane[16] = {};
  for (std::size_t i = 0; i < values.size(); ++i)
    lane[i % 16] += double(values[i]) * double(values[i]);
  for (std::size_t width : {8u, 4u, 2u, 1u})
    for (std::size_t i = 0; i < width; ++i) lane[i] += lane[i + width];
  return lane[0];
}

// Both passes of LAMB, one element at a time.
template <class T, class Parameter>
void check_lamb(std::int64_t count) {
  const auto n = std::size_t(count);
  const auto dtype = std::size_t(dtype_of<Parameter>);
  const LambStep<T> step = {T(0.1),  T(0.99), T(0.01), T(2),
                            T(1.25), T(1e-6), T(0.01), 0.05};
  const auto gradient = random_values<T>(n, 1);
  std::vector<T> main = random_values<T>(n, 2), m = random_values<T>(n, 3);
  std::vector<T> v(n, T(0.5)), u(n);
  const auto start = main;
  auto expected_m = m, expected_v = v;
  for (std::size_t i = 0; i < n; ++i) {
    T s[2] = {m[i], v[i]};
    step.moments(gradient[i] * T(-0.5), s);
    expected_m[i] = s[0];
    expected_v[i] = s[1];
    u[i] = step.direction(main[i], s);
  }
  std::vector<Parameter> parameter(n + 1), expected(n + 1);
  UpdateTile tile;
  tile.step = &step;
  tile.gradient_factor = -0.5;
  tile.trust_ratio = 1.75;
  tile.gradient = gradient.data();
  tile.main = main.data();
  tile.parameter = sizeof(Parameter) == 2 ? parameter.data() : nullptr;
  tile.state[0] = m.data();
  tile.state[1] = v.data();
  tile.count = count;
  TrustSums sums = {1.0, 2.0};

  const FlushDenormals flush;
  host_kernels().trust[dtype](tile, sums);
  EXPECT_EQ(main, start);
  EXPECT_EQ(m, expected_m);
  EXPECT_EQ(v, expected_v);
  EXPECT_EQ(sums.parameter, 1.0 + lane_squares(start));
  EXPECT_EQ(sums.update, 2.0 + lane_squares(u));

  tile.gradient = nullptr;
  host_kernels().update[std::size_t(UpdateKernel::lamb)][dtype](tile);
  for (std::size_t i = 0; i < n; ++i) {
    const T moved = start[i] - T(0.05 * 1.75) * u[i];
    ASSERT_EQ(main[i], moved);
    expected[i] = static_cast<Parameter>(moved);
  }
  EXPECT_EQ(m, expected_m);
  EXPECT_EQ(v, expected_v);
  if (sizeof(Parameter) == 2) {
    EXPECT_EQ(std::memcmp(parameter.data(), expected.data(), 2 * (n + 1)), 0);
  }
}

TEST_F(EverySet, LambTakesTwoPassesWithOneDirection) {
  for_each_set([] {
    for (std::int64_t count : {0, 1, 7, 16, 33, 255, 256, 1023, 2048}) {
      check_lamb<float, float>(count);
      check_lamb<float, bfloat16>(count);
      check_lamb<float, float16>(count);
      check_lamb<double, double>(count);
    }
  });
}

/// All values of a 16-bit type, and around each what rounds to it or to its
/// neighbour: the ties, and the nearest floats on both sides of them.
template <class Half>
std::vector<float> values_around_all_codes() {
  std::vector<float> values;
  for (std::uint32_t code = 0; code < 65536; ++code) {
    Half half, next;
    half.bits = static_cast<std::uint16_t>(code);
    next.bits = static_cast<std::uint16_t>(code + 1);
    const float value = half, other = next;
    values.push_back(value);
    if (!std::isfinite(value)) continue;
    if (!std::isfinite(other)) continue;
    const float tie = static_cast<float>((double(value) + double(other)) / 2.0);
    const float infinity = std::numeric_limits<float>::infinity();
    for (float each :
         {tie, std::nextafter(tie, infinity), std::nextafter(tie, -infinity)})
      values.push_back(each);
  }
  // Denormals, and where infinity begins.
  for (float each :
       {std::numeric_limits<float>::max(),
        std::numeric_limits<float>::denorm_min(), 0x1p-149f, 0x1.8p-134f,
        65519.996f, 65520.0f, 0x1.fefffep127f, 0x1.ffp127f})
    for (float sign : {1.0f, -1.0f}) values.push_back(sign * each);
  return values;
}

// A step that leaves p as it is, except denormal floats where they are flushed.
template <class Half>
void check_narrowing(bool flushed) {
  const auto values = values_around_all_codes<Half>();
  const LionStep<float> still = {0.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  auto main = values;
  std::vector<float> zeros(values.size()), momentum(values.size());
  std::vector<Half> parameter(values.size());
  UpdateTile tile;
  tile.step = &still;
  tile.gradient = zeros.data();
  tile.main = main.data();
  tile.parameter = parameter.data();
  tile.state[0] = momentum.data();
  tile.count = std::int64_t(values.size());
  const UpdateFunction update =
      host_kernels()
          .update[std::size_t(UpdateKernel::lion)][std::size_t(dtype_of<Half>)];
  if (flushed) {
    const FlushDenormals flush;
    update(tile);
  } else {
    update(tile);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    float expected = values[i];
    if (flushed && std::fpclassify(expected) == FP_SUBNORMAL)
      expected = std::copysign(0.0f, expected);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(main[i]));
      ASSERT_TRUE(std::isnan(float(parameter[i])));
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(main[i]),
                std::bit_cast<std::uint32_t>(expected));
      ASSERT_EQ(parameter[i].bits, Half(expected).bits) << expected;
    }
  }
}

// Against the conversion of one number, which core's tests check.
TEST_F(EverySet, StoresRoundAsOneConversionDoes) {
  for_each_set([] {
    for (bool flushed : {false, true}) {
      check_narrowing<bfloat16>(flushed);
      check_narrowing<float16>(flushed);
    }
  });
}

// Every code of 16 bits is found, wherever it is, though out is one of the
// parts.
template <class T>
void check_nonfinite_part(const std::vector<T>& codes) {
  const auto sum =
      host_kernels().sum[std::size_t(dtype_of<T>)][sizeof(T) == 8 ? 1 : 0];
  const bool in_place = sizeof(T) >= 4;
  const std::vector<T> ones(700, T(1.0f));
  std::int64_t place = 0;
  for (const T code : codes) {
    std::vector<T> bad = ones;
    place = (place + 277) % 700;
    bad[std::size_t(place)] = code;
    std::vector<double> room(700);
    void* const out = in_place ? static_cast<void*>(bad.data()) : room.data();
    const Contribution parts[] = {
        {ones.data(), 0, 1}, {ones.data(), 1, 1}, {bad.data(), 2, 1}};
    TileStatistics statistics;
    sum({parts, 3, 0, 700, 1.0, out}, statistics);
    const bool finite = std::isfinite(double(code));
    ASSERT_EQ(statistics.nonfinite, finite ? 0 : 1) << double(code);
    ASSERT_EQ(statistics.nonfinite_part, finite ? TileStatistics::no_part : 2u);
  }
}

template <class Half>
std::vector<Half> all_codes() {
  std::vector<Half> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].bits = static_cast<std::uint16_t>(i);
  return all;
}

TEST_F(EverySet, ThePartThatIsNotFiniteIsNamed) {
  for_each_set([] {
    using Limits = std::numeric_limits<double>;
    check_nonfinite_part(all_codes<float16>());
    check_nonfinite_part(all_codes<bfloat16>());
    check_nonfinite_part<float>({std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::quiet_NaN(),
                                 0x1p-149f, -0.0f, 1e38f});
    check_nonfinite_part<double>({Limits::infinity(), -Limits::infinity(),
                                  Limits::quiet_NaN(), 1e300, 5e-324});
    const float values[] = {3e38f, 3e38f};
    const Contribution parts[] = {{&values[0], 0, 1}, {&values[1], 1, 1}};
    float out = 0.0f;
    TileStatistics statistics;
    host_kernels().sum[std::size_t(DType::float32)][0](
        {parts, 2, 0, 1, 1.0, &out}, statistics);
    EXPECT_EQ(statistics.nonfinite, 1);
    EXPECT_EQ(statistics.nonfinite_part, TileStatistics::no_part);
  });
}

// Sums of several ranks are of the sum's type, among gradients of 16 bits.
template <class T>
void check_blocks() {
  using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
  const auto sum =
      host_kernels().sum[std::size_t(dtype_of<T>)][sizeof(T) == 8 ? 1 : 0];
  constexpr std::int64_t count = 777;
  std::vector<std::vector<T>> ranks(11, std::vector<T>(count));
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::int64_t i = 0; i < count; ++i)
      ranks[r][std::size_t(i)] =
          T(float((i * 37 + std::int64_t(r) * 101) % 83) /
            (r % 3 == 0 ? 7.0f : 64.0f));
  const auto parts_of = [&](int first, int end) {
    std::vector<Contribution> parts;
    for (int r = first; r < end; ++r)
      parts.push_back({ranks[std::size_t(r)].data(), r, 1});
    return parts;
  };
  const auto add = [&](const std::vector<Contribution>& parts) {
    std::vector<Sum> out(count);
    TileStatistics statistics;
    sum({parts.data(), parts.size(), 0, count, 1.0, out.data()}, statistics);
    return out;
  };
  const std::vector<Sum> expected = add(parts_of(0, 11));
  // Nodes of so many ranks; those of one rank give it as it is.
  for (const std::vector<int>& sizes :
       {std::vector{4, 4, 3}, {3, 5, 3}, {8, 3}, {1, 1, 2, 4, 2, 1}})
    for (std::size_t own = 0; own < sizes.size(); ++own) {
      std::vector<std::vector<Sum>> sums;
      std::vector<Contribution> parts;
      int first = 0;
      for (std::size_t node = 0; node < sizes.size(); ++node) {
        const int end = first + sizes[node];
        while (first < end) {
          int block = 1;
          while (node != own && first % (2 * block) == 0 &&
                 first + 2 * block <= end)
            block *= 2;
          if (block == 1) {
            parts.push_back({ranks[std::size_t(first)].data(), first, 1});
          } else {
            sums.push_back(add(parts_of(first, first + block)));
            parts.push_back({sums.back().data(), first, block});
          }
          first += block;
        }
      }
      EXPECT_EQ(add(parts), expected);
    }
}

TEST_F(EverySet, BlocksOfRanksAreSubtreesOfTheSum) {
  for_each_set([] {
    check_blocks<float16>();
    check_blocks<bfloat16>();
    check_blocks<float>();
    check_blocks<double>();
  });
}

TEST_F(EverySet, ABlockThatIsNotFiniteNamesNoRank) {
  for_each_set([] {
    const bfloat16 one[] = {bfloat16(1.0f), bfloat16(1.0f)};
    const bfloat16 bad[] = {bfloat16(1.0f),
                            bfloat16(std::numeric_limits<float>::infinity())};
    const float good_sum[] = {2.0f, 2.0f};
    const float bad_sum[] = {2.0f, std::numeric_limits<float>::quiet_NaN()};
    const auto look = [](std::vector<Contribution> parts) {
      float out[2];
      TileStatistics statistics;
      host_kernels().sum[std::size_t(DType::bfloat16)][0](
          {parts.data(), parts.size(), 0, 2, 1.0, out}, statistics);
      EXPECT_EQ(statistics.nonfinite, 1);
      return statistics;
    };
    TileStatistics found = look({{bad_sum, 0, 2}, {one, 2, 1}, {one, 3, 1}});
    EXPECT_EQ(found.nonfinite_part, TileStatistics::no_part);
    EXPECT_TRUE(found.nonfinite_block);
    found = look({{good_sum, 0, 2}, {one, 2, 1}, {bad, 3, 1}});
    EXPECT_EQ(found.nonfinite_part, 2u);
    EXPECT_FALSE(found.nonfinite_block);
    found = look({{bad_sum, 0, 2}, {one, 2, 1}, {bad, 3, 1}});
    EXPECT_EQ(found.nonfinite_part, 2u);
    EXPECT_TRUE(found.nonfinite_block);
    found = look({{bad, 0, 1}, {one, 1, 1}, {bad_sum, 2, 2}});
    EXPECT_EQ(found.nonfinite_part, 0u);
    EXPECT_FALSE(found.nonfinite_block);
  });
}

TEST_F(EverySet, WideningIsExact) {
  for_each_set([] {
    std::vector<bfloat16> b(65536);
    std::vector<float16> h(65536);
    for (std::size_t i = 0; i < 65536; ++i) {
      b[i].bits = static_cast<std::uint16_t>(i);
      h[i].bits = static_cast<std::uint16_t>(i);
    }
    std::vector<float> wide(65536);
    host_kernels().widen[std::size_t(DType::bfloat16)](b.data(), wide.data(),
                                                       65536);
    for (std::size_t i = 0; i < 65536; ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), i << 16);
    host_kernels().widen[std::size_t(DType::float16)](h.data(), wide.data(),
                                                      65536);
    for (std::size_t i = 0; i < 65536; ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(static_cast<float>(h[i])));
  });
}

TEST(FlushDenormals, HoldsInsideTheScopeOnly) {
  // Volatile, so that the products are computed where they stand.
  volatile float tiny = 0x1p-140f, half = 0.5f;
  volatile float inside = 1.0f, after = 1.0f;
  {
    const FlushDenormals flush;
    inside = tiny * half;
  }
  after = tiny * half;
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_EQ(inside, 0.0f);
#endif
  EXPECT_EQ(after, 0x1p-141f);
}

TEST(InstructionSets, UnknownNameIsRefused) {
  EXPECT_THROW(use_instruction_set("mmx"), InvalidArgument);
  EXPECT_EQ(instruction_sets().front(), "generic");
}

}  // namespace
}  // namespace kzero::detail
