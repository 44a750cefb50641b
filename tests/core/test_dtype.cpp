// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/dtype.hpp>
#include <string>

namespace kzero {
namespace {

static_assert(dtype_of<float16> == DType::float16);
static_assert(dtype_of<bfloat16> == DType::bfloat16);
static_assert(dtype_of<float> == DType::float32);
static_assert(dtype_of<double> == DType::float64);
static_assert(!Element<int> && !Element<long double> && !Element<const float>);

constexpr DType all[] = {DType::float16, DType::bfloat16, DType::float32,
                         DType::float64};

TEST(DType, Sizes) {
  EXPECT_EQ(size_of(DType::float16), 2);
  EXPECT_EQ(size_of(DType::bfloat16), 2);
  EXPECT_EQ(size_of(DType::float32), 4);
  EXPECT_EQ(size_of(DType::float64), 8);
}

TEST(DType, Names) {
  EXPECT_EQ(to_string(DType::float16), "float16");
  EXPECT_EQ(to_string(DType::bfloat16), "bfloat16");
  EXPECT_EQ(to_string(DType::float32), "float32");
  EXPECT_EQ(to_string(DType::float64), "float64");
  EXPECT_EQ(to_string(static_cast<DType>(9)), "unknown");
}

TEST(DType, MainParameters) {
  EXPECT_EQ(main_dtype(DType::float16), DType::float32);
  EXPECT_EQ(main_dtype(DType::bfloat16), DType::float32);
  EXPECT_EQ(main_dtype(DType::float32), DType::float32);
  EXPECT_EQ(main_dtype(DType::float64), DType::float64);
}

TEST(DType, VisitGivesTheType) {
  for (const DType dtype : all) {
    const auto [visited, size] = visit_dtype(dtype, [](auto type) {
      using T = typename decltype(type)::type;
      return std::pair(dtype_of<T>, std::int64_t{sizeof(T)});
    });
    EXPECT_EQ(visited, dtype);
    EXPECT_EQ(size, size_of(dtype));
  }
}

TEST(DType, VisitRefusesAnUnknownCode) {
  try {
    visit_dtype(static_cast<DType>(9), [](auto) {});
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("9"), std::string::npos);
  }
}

}  // namespace
}  // namespace kzero
