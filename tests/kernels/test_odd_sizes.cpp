// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Cut anywhere, a tile has the same bits: whole blocks and what is left of
// them are one arithmetic. Nothing behind the end is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/every_set.hpp"
#include "kernels/kernels.hpp"
#include "kernels/prepared_step.hpp"

namespace kzero::detail {
namespace {

using OddSizes = EverySet;

constexpr std::int64_t total = 700;
constexpr std::int64_t cuts[] = {1,  2,  3,  5,  7,   13,  15,  16,
                                 17, 31, 33, 61, 100, 255, 257, 513};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T, class Parameter>
struct Arrays {
  std::vector<T> gradient = random_values<T>(total, 1);
  std::vector<T> main = random_values<T>(total, 2);
  std::vector<T> state0 = random_values<T>(total, 3);
  std::vector<T> state1 = std::vector<T>(total, T(0.25));
  std::vector<T> state2 = std::vector<T>(total, T(0.5));
  std::vector<Parameter> parameter = random_values<Parameter>(total, 4);

  void update(const PreparedStep& step, std::int64_t begin, std::int64_t end) {
    UpdateTile tile;
    tile.step = step.step;
    tile.gradient_factor = 0.5;
    tile.gradient = gradient.data() + begin;
    tile.main = main.data() + begin;
    tile.parameter =
        sizeof(Parameter) == 2 ? parameter.data() + begin : nullptr;
    tile.state[0] = state0.data() + begin;
    tile.state[1] = state1.data() + begin;
    tile.state[2] = state2.data() + begin;
    tile.count = end - begin;
    (*step.update)[std::size_t(dtype_of<Parameter>)](tile);
  }

  void expect_same(const Arrays& other) const {
    EXPECT_EQ(bytes_of(main), bytes_of(other.main));
    EXPECT_EQ(bytes_of(state0), bytes_of(other.state0));
    EXPECT_EQ(bytes_of(state1), bytes_of(other.state1));
    EXPECT_EQ(bytes_of(state2), bytes_of(other.state2));
    EXPECT_EQ(bytes_of(parameter), bytes_of(other.parameter));
  }
};

template <class T, class Parameter>
void check_update(const Rule& rule, std::int64_t size) {
  const PreparedStep step = prepare_step(rule, 3, dtype_of<Parameter>);
  Arrays<T, Parameter> whole, cut, first;
  whole.update(step, 0, total);
  for (std::int64_t begin = 0; begin < total; begin += size)
    cut.update(step, begin, std::min(total, begin + size));
  cut.expect_same(whole);

  // A piece alone leaves the rest alone.
  const Arrays<T, Parameter> start;
  first.update(step, 0, size);
  for (std::int64_t i = size; i < total; ++i) {
    const auto k = std::size_t(i);
    ASSERT_EQ(first.main[k], start.main[k]) << i;
    ASSERT_EQ(first.state0[k], start.state0[k]) << i;
    ASSERT_EQ(float(first.parameter[k]), float(start.parameter[k])) << i;
  }
}

TEST_F(OddSizes, UpdatesHaveTheBitsOfOne) {
  for_each_set([] {
    for (const Rule& rule :
         {Rule(AdamW()), Rule(AdamW{.amsgrad = true}), Rule(Sgd()),
          Rule(RmsProp{.momentum = 0.9, .centered = true})})
      for (const std::int64_t size : cuts) {
        SCOPED_TRACE(size);
        check_update<float, float16>(rule, size);
        check_update<float, bfloat16>(rule, size);
        check_update<float, float>(rule, size);
        check_update<double, double>(rule, size);
      }
  });
}

template <class In, class Out>
void check_sum(int ranks, std::int64_t size, bool in_place) {
  std::vector<std::vector<In>> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(random_values<In>(total, unsigned(rank) + 1));
    inputs.back()[5] = In(0.0f);
    inputs.back()[137] = In(std::numeric_limits<float>::infinity());
    inputs.back()[total - 1] = In(0.0f);
  }
  const auto sum = [&](std::int64_t piece, TileStatistics& statistics) {
    auto own = inputs;
    std::vector<Contribution> parts;
    for (int rank = 0; rank < ranks; ++rank)
      parts.push_back({own[std::size_t(rank)].data(), rank, 1});
    std::vector<Out> out(total);
    Out* const target =
        in_place ? reinterpret_cast<Out*>(own.back().data()) : out.data();
    for (std::int64_t begin = 0; begin < total; begin += piece)
      host_kernels().sum[std::size_t(dtype_of<In>)][sizeof(Out) == 8](
          {parts.data(), parts.size(), begin, std::min(piece, total - begin),
           0.25, target + begin},
          statistics);
    return std::vector<Out>(target, target + total);
  };
  TileStatistics of_whole, of_cut;
  const auto whole = sum(total, of_whole);
  EXPECT_EQ(bytes_of(sum(size, of_cut)), bytes_of(whole));
  EXPECT_EQ(of_cut.zeros, of_whole.zeros);
  EXPECT_EQ(of_cut.nonfinite, of_whole.nonfinite);
  EXPECT_EQ(of_cut.nonfinite_part, of_whole.nonfinite_part);
  EXPECT_EQ(of_whole.zeros, std::count(whole.begin(), whole.end(), Out(0)));
  EXPECT_EQ(of_whole.nonfinite, 1);
  EXPECT_EQ(of_whole.nonfinite_part, 0u);
}

TEST_F(OddSizes, SumsHaveTheBitsOfOne) {
  for_each_set([] {
    for (const int ranks : {1, 2, 3, 8, 11, 16})
      for (const std::int64_t size : cuts) {
        SCOPED_TRACE(size);
        check_sum<float16, float>(ranks, size, false);
        check_sum<bfloat16, float>(ranks, size, false);
        check_sum<float, float>(ranks, size, false);
        check_sum<float, float>(ranks, size, true);
        check_sum<double, double>(ranks, size, false);
        check_sum<double, double>(ranks, size, true);
        check_sum<float, double>(ranks, size, false);
        check_sum<double, float>(ranks, size, false);
      }
  });
}

}  // namespace
}  // namespace kzero::detail
