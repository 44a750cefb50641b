// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/convert_elements.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/nearest_code.hpp"

namespace kzero::test {
namespace {

using detail::convert_elements;

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from) {
  std::vector<To> to(from.size());
  convert_elements(dtype_of<From>, from.data(), dtype_of<To>, to.data(),
                   std::ssize(from));
  return to;
}

std::vector<double> numbers() {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> all = {0.0,      -0.0,     infinity, -infinity,
                             1e300,    -1e40,    65520.,   65519.,
                             0x1p-149, 0x1p-150, 1e-46,    0x1p-25};
  for (int i = 0; i < 5000; ++i)
    all.push_back(std::ldexp(std::sin(i * 0.7), i % 300 - 160));
  return all;
}

std::vector<float> singles() {
  std::vector<float> all;
  for (const double each : numbers()) all.push_back(static_cast<float>(each));
  return all;
}

TEST(ConvertElements, RoundsToTheNearest) {
  const std::vector<double> doubles = numbers();
  const std::vector<float> floats = converted<float>(doubles);
  EXPECT_EQ(floats, singles());
  const auto halves = converted<float16>(floats);
  const auto brains = converted<bfloat16>(floats);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i].bits, nearest_code(binary16, floats[i])) << floats[i];
    ASSERT_EQ(brains[i].bits, nearest_code(brain16, floats[i])) << floats[i];
  }
}

// A main parameter is float32, and the parameter is rounded from that.
TEST(ConvertElements, RoundsDoublesByWayOfFloats) {
  const double above = 1.0 + 0x1p-8 + 0x1p-40;  // more than half-way
  EXPECT_EQ(converted<bfloat16>(std::vector{above})[0].bits,
            bfloat16(1.0f).bits);
  const auto brains = converted<bfloat16>(numbers());
  const std::vector<float> floats = singles();
  for (std::size_t i = 0; i < floats.size(); ++i)
    ASSERT_EQ(brains[i].bits, nearest_code(brain16, floats[i]));
}

template <class T>
void expect_exact(Format format) {
  std::vector<T> all;
  std::vector<double> values;
  for (std::uint32_t code = 0; code < format.infinity; ++code) {
    all.emplace_back().bits = static_cast<std::uint16_t>(code | 0x8000u);
    values.push_back(-value_of(format, code));
  }
  EXPECT_EQ(converted<double>(all), values);
  const std::vector<float> floats = converted<float>(all);
  EXPECT_EQ(std::vector<double>(floats.begin(), floats.end()), values);
}

TEST(ConvertElements, WidensExactly) {
  expect_exact<float16>(binary16);
  expect_exact<bfloat16>(brain16);
  const std::vector<float> floats = singles();
  EXPECT_EQ(converted<double>(floats),
            std::vector<double>(floats.begin(), floats.end()));
  EXPECT_EQ(converted<float>(converted<double>(floats)), floats);
}

TEST(ConvertElements, KeepsNotANumber) {
  const std::vector<double> nan = {std::nan("")};
  EXPECT_TRUE(std::isnan(converted<float>(nan)[0]));
  for (const auto code : {converted<float16>(nan)[0].bits & 0x7fff})
    EXPECT_GT(code, binary16.infinity);
  for (const auto code : {converted<bfloat16>(nan)[0].bits & 0x7fff})
    EXPECT_GT(code, brain16.infinity);
  EXPECT_TRUE(std::isnan(converted<double>(converted<bfloat16>(nan))[0]));
}

TEST(ConvertElements, TakesBytesAnywhere) {
  const std::vector<float> floats = singles();
  const auto count = std::ssize(floats);
  std::string from(floats.size() * 4 + 1, '?');
  std::memcpy(from.data() + 1, floats.data(), floats.size() * 4);
  std::string to(floats.size() * 8 + 3, '?');
  convert_elements(DType::float32, from.data() + 1, DType::float64,
                   to.data() + 3, count);
  std::vector<double> doubles(floats.size());
  std::memcpy(doubles.data(), to.data() + 3, floats.size() * 8);
  EXPECT_EQ(doubles, std::vector<double>(floats.begin(), floats.end()));
  EXPECT_EQ(to.substr(0, 3), "???");
  convert_elements(DType::float16, nullptr, DType::float64, nullptr, 0);
}

}  // namespace
}  // namespace kzero::test
