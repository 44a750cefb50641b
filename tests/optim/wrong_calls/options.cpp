// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Options that are refused as soon as they are written down.
#include <gtest/gtest.h>

#include <kzero/kzero.hpp>
#include <limits>

#include "core/message.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(WrongCalls, OfNonfiniteAndReduction) {
  WrongCalls rows;
  for (const int steps : {0, -1, std::numeric_limits<int>::min()})
    rows.push_back({detail::concat("throw_after(", steps, ")"),
                    [=] { Nonfinite::throw_after(steps); },
                    {detail::concat("Nonfinite::throw_after(", steps, ")"),
                     "expected 1 step or more"}});
  for (const double divisor : {0.0, -2.0, nan, infinity, 1e-40, 1e300})
    rows.push_back(
        {detail::concat("divide_by(", divisor, ")"),
         [=] { Reduction::divide_by(divisor); },
         {detail::concat("Reduction::divide_by(", divisor, ")"), "above 0"}});
  expect_refused(rows);
}

TEST(WrongCalls, OfScaler) {
  WrongCalls rows;
  const auto add = [&](const char* field, double value,
                       const DynamicScaler& scaling) {
    rows.push_back({detail::concat(field, " = ", value),
                    [=] { Scaler::dynamic(scaling); },
                    {"Scaler::dynamic",
                     detail::concat(field, " is ", value, ", expected")}});
  };
  for (const double scale : {0.0, -1.0, nan, infinity, 1e-40, 1e39}) {
    rows.push_back({detail::concat("constant(", scale, ")"),
                    [=] { Scaler::constant(scale); },
                    {"Scaler::constant", detail::concat("scale is ", scale)}});
    add("initial_scale", scale, {.initial_scale = scale});
  }
  for (const double growth : {1.0, 0.5, -2.0, nan, infinity})
    add("growth", growth, {.growth = growth});
  for (const double backoff : {0.0, 1.0, 1.5, -0.5, nan})
    add("backoff", backoff, {.backoff = backoff});
  for (const std::int64_t interval : {0, -5})
    add("growth_interval", static_cast<double>(interval),
        {.growth_interval = interval});
  for (const std::int64_t hysteresis : {0, -1})
    add("hysteresis", static_cast<double>(hysteresis),
        {.hysteresis = hysteresis});
  for (const double minimum : {-1.0, 65537.0, nan, infinity})
    add("minimum", minimum, {.minimum = minimum});
  expect_refused(rows);
}

}  // namespace
}  // namespace kzero::test
