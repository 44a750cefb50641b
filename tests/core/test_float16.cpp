// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/float16.hpp>
#include <type_traits>
#include <vector>

#include "core/nearest_code.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace kzero::test {
namespace {

static_assert(std::is_trivially_copyable_v<float16>);
static_assert(!std::is_convertible_v<float, float16>);
static_assert(std::is_convertible_v<float16, float>);
static_assert(float16(1.5f).bits == 0x3e00);
static_assert(static_cast<float>(float16(-0x1p-20f)) == -0x1p-20f);

TEST(Float16, KnownValues) {
  EXPECT_EQ(float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(float16(-2.0f).bits, 0xc000);
  EXPECT_EQ(float16(3.14159265f).bits, 0x4248);
  EXPECT_EQ(float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(float16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(float16(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(float16(1.0f + 0x1p-11f).bits, 0x3c00);
  EXPECT_EQ(float16(1.0f + 3 * 0x1p-11f).bits, 0x3c02);
}

TEST(Float16, WidensExactly) { expect_exact_values<float16>(binary16); }

TEST(Float16, EveryCodeReturns) { expect_codes_return<float16>(binary16); }

TEST(Float16, RoundsToNearestEvenAtBorders) {
  expect_nearest_at_borders<float16>(binary16);
}

TEST(Float16, RoundsToNearestEvenEverywhere) {
  expect_nearest_everywhere<float16>(binary16);
}

TEST(Float16, NanStaysQuietNan) { expect_quiet_nans<float16>(binary16); }

#if defined(__SSE2__)
// The update kernels flush denormals; the conversions must not care.
TEST(Float16, FlushToZeroChangesNothing) {
  std::vector<float> inputs;
  std::vector<std::uint16_t> codes;
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 65519) {
    inputs.push_back(float_of(static_cast<std::uint32_t>(bits)));
    codes.push_back(float16(inputs.back()).bits);
  }
  for (std::uint32_t code = 0; code <= 0xffff; ++code)
    values.push_back(widen<float16>(code));

  std::vector<std::uint16_t> flushed_codes(codes.size());
  std::vector<float> flushed_values(values.size());
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040u);  // FTZ and DAZ
  for (std::size_t i = 0; i < inputs.size(); ++i)
    flushed_codes[i] = float16(inputs[i]).bits;
  for (std::uint32_t code = 0; code <= 0xffff; ++code)
    flushed_values[code] = widen<float16>(code);
  _mm_setcsr(saved);

  EXPECT_EQ(flushed_codes, codes);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(bits_of(flushed_values[i]), bits_of(values[i])) << i;
}
#endif

}  // namespace
}  // namespace kzero::test
