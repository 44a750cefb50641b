// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/bfloat16.hpp>
#include <type_traits>
#include <vector>

#include "core/nearest_code.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace kzero::test {
namespace {

static_assert(std::is_trivially_copyable_v<bfloat16>);
static_assert(!std::is_convertible_v<float, bfloat16>);
static_assert(std::is_convertible_v<bfloat16, float>);
static_assert(bfloat16(1.5f).bits == 0x3fc0);
static_assert(static_cast<float>(bfloat16(-0x1p-20f)) == -0x1p-20f);

TEST(Bfloat16, KnownValues) {
  EXPECT_EQ(bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bfloat16(-2.0f).bits, 0xc000);
  EXPECT_EQ(bfloat16(3.14159265f).bits, 0x4049);
  EXPECT_EQ(bfloat16(0x1.fep127f).bits, 0x7f7f);
  EXPECT_EQ(bfloat16(0x1.fffffep127f).bits, 0x7f80);
  EXPECT_EQ(bfloat16(0x1p-133f).bits, 0x0001);
  EXPECT_EQ(bfloat16(0x1p-134f).bits, 0x0000);
  EXPECT_EQ(bfloat16(-0.0f).bits, 0x8000);
  EXPECT_EQ(bfloat16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(bfloat16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
}

TEST(Bfloat16, WidensExactly) { expect_exact_values<bfloat16>(brain16); }

TEST(Bfloat16, EveryCodeReturns) { expect_codes_return<bfloat16>(brain16); }

TEST(Bfloat16, RoundsToNearestEvenAtBorders) {
  expect_nearest_at_borders<bfloat16>(brain16);
}

TEST(Bfloat16, RoundsToNearestEvenEverywhere) {
  expect_nearest_everywhere<bfloat16>(brain16);
}

TEST(Bfloat16, NanStaysQuietNan) { expect_quiet_nans<bfloat16>(brain16); }

#if defined(__SSE2__)
// The update kernels flush denormals; the conversions must not care.
TEST(Bfloat16, FlushToZeroChangesNothing) {
  std::vector<float> inputs;
  std::vector<std::uint16_t> codes;
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 65519) {
    inputs.push_back(float_of(static_cast<std::uint32_t>(bits)));
    codes.push_back(bfloat16(inputs.back()).bits);
  }
  for (std::uint32_t code = 0; code <= 0xffff; ++code)
    values.push_back(widen<bfloat16>(code));

  std::vector<std::uint16_t> flushed_codes(codes.size());
  std::vector<float> flushed_values(values.size());
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040u);  // FTZ and DAZ
  for (std::size_t i = 0; i < inputs.size(); ++i)
    flushed_codes[i] = bfloat16(inputs[i]).bits;
  for (std::uint32_t code = 0; code <= 0xffff; ++code)
    flushed_values[code] = widen<bfloat16>(code);
  _mm_setcsr(saved);

  EXPECT_EQ(flushed_codes, codes);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(bits_of(flushed_values[i]), bits_of(values[i])) << i;
}
#endif

}  // namespace
}  // namespace kzero::test
