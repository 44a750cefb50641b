// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

#include "comm/simulated_wire.hpp"

namespace kzero::detail {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

SteadyClock::time_point at(std::int64_t count) {
  return SteadyClock::time_point(nanoseconds(count));
}

TEST(SimulatedWire, TakesLatencyAndBytes) {
  const SimulatedWire wire({nanoseconds(500), 2e9});
  EXPECT_EQ(wire.length_of(0), nanoseconds(500));
  EXPECT_EQ(wire.length_of(1), nanoseconds(500));
  EXPECT_EQ(wire.length_of(1000), nanoseconds(1000));
  EXPECT_EQ(wire.length_of(std::int64_t{2'000'000'000}),
            std::chrono::seconds(1) + nanoseconds(500));
}

TEST(SimulatedWire, TakesAYearAtMost) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(SimulatedWire({nanoseconds(0), 1e-300}).length_of(most),
            hours(24 * 365));
  EXPECT_EQ(SimulatedWire({nanoseconds::max(), 1}).length_of(1000),
            hours(24 * 365));
}

TEST(SimulatedWire, PassesTransfersOneAfterAnother) {
  SimulatedWire wire({nanoseconds(0), 1e9});
  EXPECT_EQ(wire.take(at(100), nanoseconds(50)), at(100));
  EXPECT_EQ(wire.take(at(100), nanoseconds(50)), at(150));
  EXPECT_EQ(wire.take(at(120), nanoseconds(10)), at(200));
  EXPECT_EQ(wire.take(at(300), nanoseconds(10)), at(300));
}

TEST(SimulatedWire, GivesWhatWasFreeToWhoAsksLate) {
  SimulatedWire wire({nanoseconds(0), 1e9});
  EXPECT_EQ(wire.take(at(1000), nanoseconds(100)), at(1000));
  // Before that, and again until nothing is left.
  EXPECT_EQ(wire.take(at(900), nanoseconds(60)), at(900));
  EXPECT_EQ(wire.take(at(900), nanoseconds(40)), at(960));
  EXPECT_EQ(wire.take(at(900), nanoseconds(1)), at(1100));
  // Too long for a gap.
  EXPECT_EQ(wire.take(at(2000), nanoseconds(100)), at(2000));
  EXPECT_EQ(wire.take(at(1500), nanoseconds(501)), at(2100));
  EXPECT_EQ(wire.take(at(1500), nanoseconds(500)), at(1500));
}

TEST(SimulatedWire, NothingTakesNoTimeBehindTheOthers) {
  SimulatedWire wire({nanoseconds(0), 1e9});
  EXPECT_EQ(wire.take(at(10), nanoseconds(0)), at(10));
  EXPECT_EQ(wire.take(at(10), nanoseconds(5)), at(10));
  EXPECT_EQ(wire.take(at(12), nanoseconds(0)), at(15));
}

TEST(SimulatedWire, ForgetsWhatIsLongPast) {
  SimulatedWire wire({nanoseconds(0), 1e9});
  for (std::int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(wire.take(at(100 * i), nanoseconds(10)), at(100 * i));
  }
  EXPECT_EQ(wire.take(at(0), nanoseconds(10)), at(0));
  // The last ones it knows.
  EXPECT_EQ(wire.take(at(99'900), nanoseconds(10)), at(99'910));
  EXPECT_EQ(wire.take(at(98'000), nanoseconds(10)), at(98'010));
}

}  // namespace
}  // namespace kzero::detail
