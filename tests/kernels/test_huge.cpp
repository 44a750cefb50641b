// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Element counts past 2^31: indices are 64-bit everywhere. Needs about 13 GB;
// runs on request (scripts/test --full).
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <kzero/bfloat16.hpp>
#include <kzero/dtype.hpp>
#include <limits>
#include <memory>

#include "kernels/kernels.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t count = (std::int64_t{1} << 31) + 8;

// Not touched where it is not written: pages of zeros take no memory.
template <class T>
std::unique_ptr<T[], void (*)(void*)> zeros() {
  auto* data = static_cast<T*>(std::calloc(std::size_t(count), sizeof(T)));
  return {data, std::free};
}

TEST(Huge, CastsReachTheLastElement) {
  const auto source = zeros<bfloat16>();
  const auto target = zeros<float>();
  ASSERT_TRUE(source && target);
  source[0] = bfloat16(1.5f);
  source[count - 1] = bfloat16(-2.5f);
  const detail::HostKernels& kernels = detail::host_kernels();
  const auto widen = kernels.widen[std::size_t(DType::bfloat16)];
  widen(source.get(), target.get(), count);
  EXPECT_EQ(target[0], 1.5f);
  EXPECT_EQ(target[count - 1], -2.5f);
  EXPECT_EQ(target[count / 2], 0.0f);
}

TEST(Huge, CountsReachTheLastElement) {
  const auto values = zeros<bfloat16>();
  ASSERT_TRUE(values);
  values[0] = bfloat16(std::numeric_limits<float>::infinity());
  values[count - 1] = bfloat16(std::numeric_limits<float>::quiet_NaN());
  const auto nonfinite =
      detail::host_kernels().nonfinite[std::size_t(DType::bfloat16)];
  EXPECT_EQ(nonfinite(values.get(), count), 2);
}

}  // namespace
}  // namespace kzero::test
